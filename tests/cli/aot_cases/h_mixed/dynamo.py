class GraphModule(torch.nn.Module):
    def forward(self, L_a_: "f32[4][1]cpu", L_b_: "f32[4][1]cpu"):
        l_a_ = L_a_
        l_b_ = L_b_

        # File: cases.py:175 in h_mixed, code: a.mul_(b)
        mul_: "f32[4][1]cpu" = l_a_.mul_(l_b_);  mul_ = None

        # No stacktrace found for following nodes
        _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

        # File: cases.py:176 in h_mixed, code: with torch.no_grad(): a.add_(1)
        add_: "f32[4][1]cpu" = l_a_.add_(1);  add_ = None

        # No stacktrace found for following nodes
        _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None

        # File: cases.py:177 in h_mixed, code: return a * b
        mul: "f32[4][1]cpu" = l_a_ * l_b_;  l_a_ = l_b_ = None
        return (mul,)
