class GraphModule(torch.nn.Module):
    def forward(self, L_w_: "f32[4, 2][2, 1]cpu", L_x_: "f32[3, 4][4, 1]cpu", L_b_: "f32[2][1]cpu"):
        l_w_ = L_w_
        l_x_ = L_x_
        l_b_ = L_b_

        sum_1: "f32[][]cpu" = l_w_.sum()
        gt: "b8[][]cpu" = sum_1 > 1000000000.0;  sum_1 = None
        cond_true_0 = self.cond_true_0
        cond_false_0 = self.cond_false_0
        cond = torch.ops.higher_order.cond(gt, cond_true_0, cond_false_0, (l_w_, l_x_, l_b_));  gt = cond_true_0 = cond_false_0 = l_w_ = l_x_ = l_b_ = None
        y: "f32[3, 2][2, 1]cpu" = cond[0]
        z: "f32[3][1]cpu" = cond[1];  cond = None

        tanh: "f32[3, 2][2, 1]cpu" = y.tanh();  y = None
        mul: "f32[3][1]cpu" = z * 2;  z = None
        return (tanh, mul)

    class cond_true_0(torch.nn.Module):
        def forward(self, l_w_: "f32[4, 2][2, 1]cpu", l_x_: "f32[3, 4][4, 1]cpu", l_b__true_branch: "f32[2][1]cpu"):
            l_w__1 = l_w_
            l_x__1 = l_x_

            matmul: "f32[3, 2][2, 1]cpu" = l_x__1 @ l_w__1;  l_w__1 = None
            child: "f32[3, 2][2, 1]cpu" = matmul + l_b__true_branch;  matmul = l_b__true_branch = None
            child_1: "f32[3][1]cpu" = l_x__1.sum(1);  l_x__1 = None
            return (child, child_1)

    class cond_false_0(torch.nn.Module):
        def forward(self, l_w_: "f32[4, 2][2, 1]cpu", l_x_: "f32[3, 4][4, 1]cpu", l_b__true_branch: "f32[2][1]cpu"):
            l_w__1 = l_w_
            l_x__1 = l_x_

            sin: "f32[4, 2][2, 1]cpu" = l_w__1.sin();  l_w__1 = None
            child: "f32[3, 2][2, 1]cpu" = l_x__1 @ sin;  sin = None
            exp: "f32[3, 4][4, 1]cpu" = l_x__1.exp();  l_x__1 = None
            child_1: "f32[3][1]cpu" = exp.sum(1);  exp = None
            return (child, child_1)
