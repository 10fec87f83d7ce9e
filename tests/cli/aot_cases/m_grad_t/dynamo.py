class m_grad_t(torch.nn.Module):
    def forward(self, x_1: "f32[3, 2][2, 1]cpu"):
        # No stacktrace found for following nodes
        t_: "f32[2, 3][1, 2]cpu" = torch.ops.aten.t_.default(x_1);  x_1 = None
        mul: "f32[2, 3][1, 2]cpu" = torch.ops.aten.mul.Tensor(t_, 2);  t_ = None
        return mul
