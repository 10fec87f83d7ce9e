class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3, 4][4, 1]cpu"):
        l_x_ = L_x_

        # File: cases.py:143 in m_local, code: y = x * 2; y.t_(); y.add_(1); return y, y.t()
        y: "f32[4, 3][1, 4]cpu" = l_x_ * 2;  l_x_ = None
        t_: "f32[4, 3][1, 4]cpu" = y.t_();  t_ = None
        add_: "f32[4, 3][1, 4]cpu" = y.add_(1);  add_ = None
        t: "f32[3, 4][4, 1]cpu" = y.t()
        return (y, t)
