class GraphModule(torch.nn.Module):
    def forward(self, L_c_: "f32[3, 3][3, 1]cpu", L_a_: "f32[3, 3][3, 1]cpu", L_b_: "f32[3, 3][3, 1]cpu"):
        l_c_ = L_c_
        l_a_ = L_a_
        l_b_ = L_b_

        # File: cases.py:232 in x_accumulate, code: c.addmm_(a, b); a.add_(c.t()); b.copy_(a @ c); return c.relu() + b
        addmm_: "f32[3, 3][3, 1]cpu" = l_c_.addmm_(l_a_, l_b_);  addmm_ = None
        t: "f32[3, 3][1, 3]cpu" = l_c_.t()
        add_: "f32[3, 3][3, 1]cpu" = l_a_.add_(t);  t = add_ = None
        matmul: "f32[3, 3][3, 1]cpu" = l_a_ @ l_c_;  l_a_ = None
        copy_: "f32[3, 3][3, 1]cpu" = l_b_.copy_(matmul);  matmul = copy_ = None
        relu: "f32[3, 3][3, 1]cpu" = l_c_.relu();  l_c_ = None
        add: "f32[3, 3][3, 1]cpu" = relu + l_b_;  relu = l_b_ = None
        return (add,)
