class GraphModule(torch.nn.Module):
    def forward(self, L_w_: "f32[6][1]cpu"):
        l_w_ = L_w_

        # File: cases.py:266 in x_hidden_part, code: y = w * 2
        y: "f32[6][1]cpu" = l_w_ * 2

        # No stacktrace found for following nodes
        _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

        # File: cases.py:267 in x_hidden_part, code: with torch.no_grad(): y[2:4].zero_()
        getitem: "f32[2][1]cpu" = y[slice(2, 4, None)]
        zero_: "f32[2][1]cpu" = getitem.zero_();  getitem = zero_ = None

        # No stacktrace found for following nodes
        _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None

        # File: cases.py:268 in x_hidden_part, code: return y * w
        mul_1: "f32[6][1]cpu" = y * l_w_;  y = l_w_ = None
        return (mul_1,)
