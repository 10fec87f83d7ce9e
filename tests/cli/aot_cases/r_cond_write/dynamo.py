class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3][1]cpu", L_buffer_: "f32[3][1]cpu"):
        l_x_ = L_x_
        l_buffer_ = L_buffer_

        sum_1: "f32[][]cpu" = l_x_.sum()
        gt: "b8[][]cpu" = sum_1 > 0;  sum_1 = None
        cond_true_0 = self.cond_true_0
        cond_false_0 = self.cond_false_0
        cond = torch.ops.higher_order.cond(gt, cond_true_0, cond_false_0, (l_buffer_, l_x_));  gt = cond_true_0 = cond_false_0 = l_x_ = None
        y: "f32[3][1]cpu" = cond[0];  cond = None

        mul: "f32[3][1]cpu" = y * l_buffer_;  y = None
        clone: "f32[3][1]cpu" = l_buffer_.clone();  l_buffer_ = None
        return (mul, clone)

    class cond_true_0(torch.nn.Module):
        def forward(self, l_buffer_: "f32[3][1]cpu", l_x_: "f32[3][1]cpu"):
            l_buffer__1 = l_buffer_
            l_x__1 = l_x_

            add_: "f32[3][1]cpu" = l_buffer__1.add_(1);  add_ = None

            add: "f32[3][1]cpu" = l_x__1 + l_buffer__1;  l_x__1 = l_buffer__1 = None
            return (add,)

    class cond_false_0(torch.nn.Module):
        def forward(self, l_buffer_: "f32[3][1]cpu", l_x_: "f32[3][1]cpu"):
            l_buffer__1 = l_buffer_
            l_x__1 = l_x_

            mul_: "f32[3][1]cpu" = l_buffer__1.mul_(2);  mul_ = None

            sub: "f32[3][1]cpu" = l_x__1 - l_buffer__1;  l_x__1 = l_buffer__1 = None
            return (sub,)
