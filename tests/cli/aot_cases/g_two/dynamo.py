class GraphModule(torch.nn.Module):
    def forward(self, L_a_: "f32[3, 4][4, 1]cpu", L_b_: "f32[3, 4][4, 1]cpu"):
        l_a_ = L_a_
        l_b_ = L_b_

        # File: cases.py:186 in g_two, code: a.add_(b); b.mul_(a); return (a * b).sum(1)
        add_: "f32[3, 4][4, 1]cpu" = l_a_.add_(l_b_);  add_ = None
        mul_: "f32[3, 4][4, 1]cpu" = l_b_.mul_(l_a_);  mul_ = None
        mul: "f32[3, 4][4, 1]cpu" = l_a_ * l_b_;  l_a_ = l_b_ = None
        sum_1: "f32[3][1]cpu" = mul.sum(1);  mul = None
        return (sum_1,)
