class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4][1]cpu", L_y_: "f32[4][1]cpu"):
        l_x_ = L_x_
        l_y_ = L_y_

        sum_1: "f32[][]cpu" = l_x_.sum()
        lt: "b8[][]cpu" = sum_1 < 1000000000.0;  sum_1 = None
        exp: "f32[4][1]cpu" = l_x_.exp();  l_x_ = None
        cond_true_1 = self.cond_true_1
        cond_false_1 = self.cond_false_1
        cond = torch.ops.higher_order.cond(lt, cond_true_1, cond_false_1, (exp, l_y_));  lt = cond_true_1 = cond_false_1 = exp = None
        getitem: "f32[4][1]cpu" = cond[0];  cond = None
        mul: "f32[4][1]cpu" = getitem * l_y_;  getitem = l_y_ = None
        return (mul,)

    class cond_true_1(torch.nn.Module):
        def forward(self, exp: "f32[4][1]cpu", l_y_: "f32[4][1]cpu"):
            exp_1 = exp
            l_y__1 = l_y_

            sum_1: "f32[][]cpu" = l_y__1.sum()
            gt: "b8[][]cpu" = sum_1 > 1000000000.0;  sum_1 = None
            cond_true_0 = self.cond_true_0
            cond_false_0 = self.cond_false_0
            cond = torch.ops.higher_order.cond(gt, cond_true_0, cond_false_0, (exp_1, l_y__1));  gt = cond_true_0 = cond_false_0 = exp_1 = l_y__1 = None
            getitem: "f32[4][1]cpu" = cond[0];  cond = None
            cos: "f32[4][1]cpu" = getitem.cos();  getitem = None
            return (cos,)

        class cond_true_0(torch.nn.Module):
            def forward(self, exp: "f32[4][1]cpu", l_y_: "f32[4][1]cpu"):
                exp_1 = exp
                l_y__1 = l_y_

                mul: "f32[4][1]cpu" = exp_1 * l_y__1;  exp_1 = l_y__1 = None
                return (mul,)

        class cond_false_0(torch.nn.Module):
            def forward(self, exp: "f32[4][1]cpu", l_y_: "f32[4][1]cpu"):
                exp_1 = exp
                l_y__1 = l_y_

                mul: "f32[4][1]cpu" = l_y__1 * l_y__1;  l_y__1 = None
                add: "f32[4][1]cpu" = 1 + mul;  mul = None
                truediv: "f32[4][1]cpu" = exp_1 / add;  exp_1 = add = None
                sin: "f32[4][1]cpu" = truediv.sin();  truediv = None
                return (sin,)

    class cond_false_1(torch.nn.Module):
        def forward(self, exp: "f32[4][1]cpu", l_y_: "f32[4][1]cpu"):
            exp_1 = exp
            l_y__1 = l_y_

            sub: "f32[4][1]cpu" = exp_1 - l_y__1;  exp_1 = l_y__1 = None
            return (sub,)
