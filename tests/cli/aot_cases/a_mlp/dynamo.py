class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3, 4][4, 1]cpu", L_w_: "f32[4, 4][4, 1]cpu", L_b_: "f32[4][1]cpu"):
        l_x_ = L_x_
        l_w_ = L_w_
        l_b_ = L_b_

        # No stacktrace found for following nodes
        _enter_autocast = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)

        # File: cases.py:278 in a_mlp, code: y = F.linear(x, w, b); z = torch.cat([y, x], 1)
        y: "bf16[3, 4][4, 1]cpu" = torch._C._nn.linear(l_x_, l_w_, l_b_);  l_b_ = None
        z: "f32[3, 8][8, 1]cpu" = torch.cat([y, l_x_], 1)

        # No stacktrace found for following nodes
        _enter_autocast_1 = torch.amp.autocast_mode._enter_autocast('cpu', None, False, None)

        # File: cases.py:279 in a_mlp, code: with torch.autocast('cpu', enabled=False): u = x @ w
        u: "f32[3, 4][4, 1]cpu" = l_x_ @ l_w_;  l_w_ = None

        # No stacktrace found for following nodes
        _exit_autocast = torch.amp.autocast_mode._exit_autocast(_enter_autocast_1);  _enter_autocast_1 = _exit_autocast = None

        # File: cases.py:280 in a_mlp, code: v = F.mse_loss(y, x)
        v: "f32[][]cpu" = torch.nn.functional.mse_loss(y, l_x_);  l_x_ = None

        # No stacktrace found for following nodes
        _exit_autocast_1 = torch.amp.autocast_mode._exit_autocast(_enter_autocast);  _enter_autocast = _exit_autocast_1 = None

        # File: cases.py:281 in a_mlp, code: return z, u + y.float(), v
        float_1: "f32[3, 4][4, 1]cpu" = y.float();  y = None
        add: "f32[3, 4][4, 1]cpu" = u + float_1;  u = float_1 = None
        return (z, add, v)
