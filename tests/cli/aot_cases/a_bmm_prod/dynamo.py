class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[2, 3, 4][12, 4, 1]cpu", L_w_: "f32[2, 4, 5][20, 5, 1]cpu"):
        l_x_ = L_x_
        l_w_ = L_w_

        # No stacktrace found for following nodes
        _enter_autocast = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)

        # File: cases.py:289 in a_bmm_prod, code: y = torch.bmm(x, w); z = y.prod(2); s = torch.stack([y[:, :, 0], x[:, :, 0]])
        y: "bf16[2, 3, 5][15, 5, 1]cpu" = torch.bmm(l_x_, l_w_);  l_w_ = None
        z: "f32[2, 3][3, 1]cpu" = y.prod(2)
        getitem: "bf16[2, 3][15, 5]cpu" = y[(slice(None, None, None), slice(None, None, None), 0)];  y = None
        getitem_1: "f32[2, 3][12, 4]cpu" = l_x_[(slice(None, None, None), slice(None, None, None), 0)];  l_x_ = None
        s: "f32[2, 2, 3][6, 3, 1]cpu" = torch.stack([getitem, getitem_1]);  getitem = getitem_1 = None

        # No stacktrace found for following nodes
        _exit_autocast = torch.amp.autocast_mode._exit_autocast(_enter_autocast);  _enter_autocast = _exit_autocast = None
        return (z, s)
