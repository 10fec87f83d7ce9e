class GraphModule(torch.nn.Module):
    def forward(self, L_a_: "f32[4, 4][4, 1]cpu", L_b_: "f32[4, 4][4, 1]cpu"):
        l_a_ = L_a_
        l_b_ = L_b_

        # File: cases.py:42 in w_swap, code: c = a.clone(); a.copy_(b); b.copy_(c); return a + b
        c: "f32[4, 4][4, 1]cpu" = l_a_.clone()
        copy_: "f32[4, 4][4, 1]cpu" = l_a_.copy_(l_b_);  copy_ = None
        copy__1: "f32[4, 4][4, 1]cpu" = l_b_.copy_(c);  c = copy__1 = None
        add: "f32[4, 4][4, 1]cpu" = l_a_ + l_b_;  l_a_ = l_b_ = None
        return (add,)
