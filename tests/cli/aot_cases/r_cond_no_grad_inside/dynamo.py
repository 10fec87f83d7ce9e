class GraphModule(torch.nn.Module):
    def forward(self, L_y_: "f32[4][1]cpu", L_x_: "f32[4][1]cpu"):
        l_y_ = L_y_
        l_x_ = L_x_

        sum_1: "f32[][]cpu" = l_y_.sum()
        lt: "b8[][]cpu" = sum_1 < 1000000000.0;  sum_1 = None
        cond_true_0 = self.cond_true_0
        cond_false_0 = self.cond_false_0
        cond = torch.ops.higher_order.cond(lt, cond_true_0, cond_false_0, (l_x_, l_y_));  lt = cond_true_0 = cond_false_0 = l_x_ = l_y_ = None
        getitem: "f32[4][1]cpu" = cond[0];  cond = None
        return (getitem,)

    class cond_true_0(torch.nn.Module):
        def forward(self, l_x_: "f32[4][1]cpu", l_y__true_branch: "f32[4][1]cpu"):
            l_x__1 = l_x_

            # No stacktrace found for following nodes
            _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

            s: "f32[4][1]cpu" = l_x__1.exp()

            # No stacktrace found for following nodes
            _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None

            mul: "f32[4][1]cpu" = s * l_y__true_branch;  s = l_y__true_branch = None
            add: "f32[4][1]cpu" = mul + l_x__1;  mul = l_x__1 = None
            return (add,)

    class cond_false_0(torch.nn.Module):
        def forward(self, l_x_: "f32[4][1]cpu", l_y__true_branch: "f32[4][1]cpu"):
            l_x__1 = l_x_

            clone: "f32[4][1]cpu" = l_x__1.clone();  l_x__1 = None
            return (clone,)
