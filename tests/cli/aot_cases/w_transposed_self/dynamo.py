class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[5, 5][5, 1]cpu"):
        l_x_ = L_x_

        # File: cases.py:51 in w_transposed_self, code: y = x.t().clone(); x.add_(y); return y - x
        t: "f32[5, 5][1, 5]cpu" = l_x_.t()
        y: "f32[5, 5][1, 5]cpu" = t.clone();  t = None
        add_: "f32[5, 5][5, 1]cpu" = l_x_.add_(y);  add_ = None
        sub: "f32[5, 5][1, 5]cpu" = y - l_x_;  y = l_x_ = None
        return (sub,)
