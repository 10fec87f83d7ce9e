class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3, 4][4, 1]cpu", L_w_: "f32[4, 4][4, 1]cpu", L_b_: "f32[4][1]cpu"):
        l_x_ = L_x_
        l_w_ = L_w_
        l_b_ = L_b_

        # No stacktrace found for following nodes
        _enter_autocast = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)

        linear: "bf16[3, 4][4, 1]cpu" = torch._C._nn.linear(l_x_, l_w_, l_b_)
        relu: "bf16[3, 4][4, 1]cpu" = linear.relu();  linear = None
        y: "bf16[3, 4][4, 1]cpu" = torch._C._nn.linear(relu, l_w_, l_b_);  relu = l_b_ = None

        # No stacktrace found for following nodes
        _enter_autocast_1 = torch.amp.autocast_mode._enter_autocast('cpu', None, False, None)

        float_1: "f32[3, 4][4, 1]cpu" = y.float()
        z: "f32[3, 4][4, 1]cpu" = float_1 @ l_w_;  float_1 = l_w_ = None

        # No stacktrace found for following nodes
        _exit_autocast = torch.amp.autocast_mode._exit_autocast(_enter_autocast_1);  _enter_autocast_1 = _exit_autocast = None
        _exit_autocast_1 = torch.amp.autocast_mode._exit_autocast(_enter_autocast);  _enter_autocast = _exit_autocast_1 = None

        bfloat16: "bf16[3, 4][4, 1]cpu" = l_x_.bfloat16();  l_x_ = None
        cat: "bf16[6, 4][4, 1]cpu" = torch.cat([y, bfloat16]);  y = bfloat16 = None
        return (z, cat)
