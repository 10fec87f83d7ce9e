class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4][1]cpu", L_y_: "f32[4][1]cpu"):
        l_x_ = L_x_
        l_y_ = L_y_

        a: "f32[4][1]cpu" = l_x_ * 2;  l_x_ = None

        mul_: "f32[4][1]cpu" = a.mul_(l_y_);  mul_ = None

        sum_1: "f32[][]cpu" = l_y_.sum()
        lt: "b8[][]cpu" = sum_1 < 1000000000.0;  sum_1 = None
        cond_true_0 = self.cond_true_0
        cond_false_0 = self.cond_false_0
        cond = torch.ops.higher_order.cond(lt, cond_true_0, cond_false_0, (a, l_y_));  lt = cond_true_0 = cond_false_0 = l_y_ = None
        b: "f32[4][1]cpu" = cond[0];  cond = None

        add_: "f32[4][1]cpu" = b.add_(a);  add_ = None
        return (b, a)

    class cond_true_0(torch.nn.Module):
        def forward(self, a: "f32[4][1]cpu", l_y__true_branch: "f32[4][1]cpu"):
            a_1 = a

            sin: "f32[4][1]cpu" = a_1.sin();  a_1 = None
            mul: "f32[4][1]cpu" = sin * l_y__true_branch;  sin = l_y__true_branch = None
            return (mul,)

    class cond_false_0(torch.nn.Module):
        def forward(self, a: "f32[4][1]cpu", l_y__true_branch: "f32[4][1]cpu"):
            a_1 = a

            cos: "f32[4][1]cpu" = a_1.cos();  a_1 = None
            return (cos,)
