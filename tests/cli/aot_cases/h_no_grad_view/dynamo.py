class GraphModule(torch.nn.Module):
    def forward(self, L_w_: "f32[4, 3][3, 1]cpu"):
        l_w_ = L_w_

        # No stacktrace found for following nodes
        _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

        # File: cases.py:167 in h_no_grad_view, code: with torch.no_grad(): w[0].fill_(2.0); w[:, 1] *= 3
        getitem: "f32[3][1]cpu" = l_w_[0]
        fill_: "f32[3][1]cpu" = getitem.fill_(2.0);  getitem = fill_ = None
        getitem_1: "f32[4][3]cpu" = l_w_[(slice(None, None, None), 1)]
        getitem_1 *= 3;  imul: "f32[4][3]cpu" = getitem_1;  getitem_1 = None
        l_w_[(slice(None, None, None), 1)] = imul;  setitem = l_w_;  imul = setitem = None

        # No stacktrace found for following nodes
        _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None

        # File: cases.py:168 in h_no_grad_view, code: return w.exp().sum(0)
        exp: "f32[4, 3][3, 1]cpu" = l_w_.exp();  l_w_ = None
        sum_1: "f32[3][1]cpu" = exp.sum(0);  exp = None
        return (sum_1,)
