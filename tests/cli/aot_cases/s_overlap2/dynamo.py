class s_overlap2(torch.nn.Module):
    def forward(self, a_1: "f32[8][1]cpu", b_1: "f32[8][1]cpu"):
        # No stacktrace found for following nodes
        mul: "f32[8][1]cpu" = torch.ops.aten.mul.Tensor(a_1, b_1)
        mul_: "f32[8][1]cpu" = torch.ops.aten.mul_.Tensor(a_1, 2);  a_1 = None
        add: "f32[8][1]cpu" = torch.ops.aten.add.Tensor(mul_, b_1)
        sub_: "f32[8][1]cpu" = torch.ops.aten.sub_.Tensor(b_1, 1);  b_1 = None
        sub: "f32[8][1]cpu" = torch.ops.aten.sub.Tensor(mul_, sub_);  mul_ = sub_ = None
        return (mul, add, sub)
