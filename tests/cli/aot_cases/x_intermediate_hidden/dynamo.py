class GraphModule(torch.nn.Module):
    def forward(self, L_w_: "f32[3][1]cpu"):
        l_w_ = L_w_

        # File: cases.py:263 in x_intermediate_hidden, code: y = w * 3; y.detach().add_(1); z = y * y; return z, y
        y: "f32[3][1]cpu" = l_w_ * 3;  l_w_ = None
        detach: "f32[3][1]cpu" = y.detach()
        add_: "f32[3][1]cpu" = detach.add_(1);  detach = add_ = None
        z: "f32[3][1]cpu" = y * y
        return (z, y)
