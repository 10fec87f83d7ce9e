class GraphModule(torch.nn.Module):
    def forward(self, L_a_: "f32[3, 4][4, 1]cpu", L_b_: "f32[4][1]cpu"):
        l_a_ = L_a_
        l_b_ = L_b_

        # File: cases.py:253 in x_bias, code: y = a * 2; a.add_(b); a.t()[0].mul_(2); return (y + a).relu()
        y: "f32[3, 4][4, 1]cpu" = l_a_ * 2
        add_: "f32[3, 4][4, 1]cpu" = l_a_.add_(l_b_);  l_b_ = add_ = None
        t: "f32[4, 3][1, 4]cpu" = l_a_.t()
        getitem: "f32[3][4]cpu" = t[0];  t = None
        mul_: "f32[3][4]cpu" = getitem.mul_(2);  getitem = mul_ = None
        add: "f32[3, 4][4, 1]cpu" = y + l_a_;  y = l_a_ = None
        relu: "f32[3, 4][4, 1]cpu" = add.relu();  add = None
        return (relu,)
