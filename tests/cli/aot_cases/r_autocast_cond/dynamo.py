class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3, 4][4, 1]cpu", L_w_: "f32[4, 4][4, 1]cpu", L_v_: "f32[4, 2][2, 1]cpu"):
        l_x_ = L_x_
        l_w_ = L_w_
        l_v_ = L_v_

        # No stacktrace found for following nodes
        _enter_autocast = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)

        sum_1: "f32[][]cpu" = l_x_.sum()
        lt: "b8[][]cpu" = sum_1 < 1000000000.0;  sum_1 = None
        cond_true_0 = self.cond_true_0
        cond_false_0 = self.cond_false_0
        cond = torch.ops.higher_order.cond(lt, cond_true_0, cond_false_0, (l_w_, l_x_));  lt = cond_true_0 = cond_false_0 = l_w_ = l_x_ = None
        y: "bf16[3, 4][4, 1]cpu" = cond[0];  cond = None

        float_1: "f32[3, 4][4, 1]cpu" = y.float();  y = None
        matmul: "bf16[3, 2][2, 1]cpu" = float_1 @ l_v_;  float_1 = l_v_ = None

        # No stacktrace found for following nodes
        _exit_autocast = torch.amp.autocast_mode._exit_autocast(_enter_autocast);  _enter_autocast = _exit_autocast = None
        return (matmul,)

    class cond_true_0(torch.nn.Module):
        def forward(self, l_w_: "f32[4, 4][4, 1]cpu", l_x_: "f32[3, 4][4, 1]cpu"):
            l_w__1 = l_w_
            l_x__1 = l_x_

            matmul: "bf16[3, 4][4, 1]cpu" = l_x__1 @ l_w__1;  l_x__1 = l_w__1 = None
            return (matmul,)

    class cond_false_0(torch.nn.Module):
        def forward(self, l_w_: "f32[4, 4][4, 1]cpu", l_x_: "f32[3, 4][4, 1]cpu"):
            l_w__1 = l_w_
            l_x__1 = l_x_

            t: "f32[4, 4][1, 4]cpu" = l_w__1.t();  l_w__1 = None
            matmul: "bf16[3, 4][4, 1]cpu" = l_x__1 @ t;  l_x__1 = t = None
            return (matmul,)
