class GraphModule(torch.nn.Module):
    def forward(self, L_a_: "f32[4, 4][4, 1]cpu", L_b_: "f32[4, 4][4, 1]cpu"):
        l_a_ = L_a_
        l_b_ = L_b_

        # File: cases.py:45 in w_cross, code: c = a * b; a.add_(c); b.mul_(a); a.sub_(b.sum(0)); return a.sum(), b.sum(1)
        c: "f32[4, 4][4, 1]cpu" = l_a_ * l_b_
        add_: "f32[4, 4][4, 1]cpu" = l_a_.add_(c);  c = add_ = None
        mul_: "f32[4, 4][4, 1]cpu" = l_b_.mul_(l_a_);  mul_ = None
        sum_1: "f32[4][1]cpu" = l_b_.sum(0)
        sub_: "f32[4, 4][4, 1]cpu" = l_a_.sub_(sum_1);  sum_1 = sub_ = None
        sum_2: "f32[][]cpu" = l_a_.sum();  l_a_ = None
        sum_3: "f32[4][1]cpu" = l_b_.sum(1);  l_b_ = None
        return (sum_2, sum_3)
