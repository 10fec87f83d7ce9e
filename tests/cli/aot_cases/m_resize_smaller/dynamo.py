class m_resize_smaller(torch.nn.Module):
    def forward(self, x_1: "f32[2, 6][6, 1]cpu"):
        # No stacktrace found for following nodes
        resize_: "f32[2, 3][3, 1]cpu" = torch.ops.aten.resize_.default(x_1, [2, 3]);  x_1 = None
        add: "f32[2, 3][3, 1]cpu" = torch.ops.aten.add.Tensor(resize_, 1);  resize_ = None
        return add
