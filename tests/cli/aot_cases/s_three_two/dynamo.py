class s_three_two(torch.nn.Module):
    def forward(self, a_1: "f32[6][1]cpu", b_1: "f32[6][1]cpu", c_1: "f32[6][1]cpu"):
        # No stacktrace found for following nodes
        mul_: "f32[6][1]cpu" = torch.ops.aten.mul_.Tensor(b_1, 2);  b_1 = None
        add: "f32[6][1]cpu" = torch.ops.aten.add.Tensor(a_1, 1);  a_1 = None
        add_1: "f32[6][1]cpu" = torch.ops.aten.add.Tensor(c_1, mul_);  c_1 = mul_ = None
        return (add, add_1)
