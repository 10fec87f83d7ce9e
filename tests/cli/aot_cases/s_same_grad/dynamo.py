class s_same_grad(torch.nn.Module):
    def forward(self, a_1: "f32[3, 2][2, 1]cpu", c_1: "f32[3, 2][2, 1]cpu", b_1: "f32[3, 2][2, 1]cpu"):
        # No stacktrace found for following nodes
        mul: "f32[3, 2][2, 1]cpu" = torch.ops.aten.mul.Tensor(b_1, b_1)
        mul_1: "f32[3, 2][2, 1]cpu" = torch.ops.aten.mul.Tensor(c_1, b_1);  c_1 = b_1 = None
        add: "f32[3, 2][2, 1]cpu" = torch.ops.aten.add.Tensor(mul, mul_1);  mul = mul_1 = None
        return add
