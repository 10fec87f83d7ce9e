class GraphModule(torch.nn.Module):
    def forward(self, L_scale_: "f32[3, 2][2, 1]cpu", L_x_: "f32[3, 4][4, 1]cpu", L_w_: "f32[4, 2][2, 1]cpu", L_b_: "f32[2][1]cpu"):
        l_scale_ = L_scale_
        l_x_ = L_x_
        l_w_ = L_w_
        l_b_ = L_b_

        sum_1: "f32[][]cpu" = l_scale_.sum()
        lt: "b8[][]cpu" = sum_1 < 1000000000.0;  sum_1 = None
        cond_true_0 = self.cond_true_0
        cond_false_0 = self.cond_false_0
        cond = torch.ops.higher_order.cond(lt, cond_true_0, cond_false_0, (l_w_, l_x_, l_b_));  lt = cond_true_0 = cond_false_0 = l_w_ = l_x_ = l_b_ = None
        y: "f32[3, 2][2, 1]cpu" = cond[0]
        z: "f32[3][1]cpu" = cond[1];  cond = None

        mul: "f32[3, 2][2, 1]cpu" = y * l_scale_;  y = l_scale_ = None
        getitem_2: "f32[3, 1][1, 1]cpu" = z[(slice(None, None, None), None)];  z = None
        add: "f32[3, 2][2, 1]cpu" = mul + getitem_2;  mul = getitem_2 = None
        return (add,)

    class cond_true_0(torch.nn.Module):
        def forward(self, l_w_: "f32[4, 2][2, 1]cpu", l_x_: "f32[3, 4][4, 1]cpu", l_b__true_branch: "f32[2][1]cpu"):
            l_w__1 = l_w_
            l_x__1 = l_x_

            matmul: "f32[3, 2][2, 1]cpu" = l_x__1 @ l_w__1;  l_x__1 = l_w__1 = None
            h: "f32[3, 2][2, 1]cpu" = matmul + l_b__true_branch;  matmul = l_b__true_branch = None

            child: "f32[3, 2][2, 1]cpu" = h.relu()
            exp: "f32[3, 2][2, 1]cpu" = h.exp();  h = None
            child_1: "f32[3][1]cpu" = exp.sum(1);  exp = None
            return (child, child_1)

    class cond_false_0(torch.nn.Module):
        def forward(self, l_w_: "f32[4, 2][2, 1]cpu", l_x_: "f32[3, 4][4, 1]cpu", l_b__true_branch: "f32[2][1]cpu"):
            l_w__1 = l_w_
            l_x__1 = l_x_

            sin: "f32[4, 2][2, 1]cpu" = l_w__1.sin();  l_w__1 = None
            child: "f32[3, 2][2, 1]cpu" = l_x__1 @ sin;  sin = None
            mul: "f32[3, 4][4, 1]cpu" = l_x__1 * l_x__1;  l_x__1 = None
            child_1: "f32[3][1]cpu" = mul.sum(1);  mul = None
            return (child, child_1)
