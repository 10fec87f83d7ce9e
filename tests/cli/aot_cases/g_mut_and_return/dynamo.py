class g_mut_and_return(torch.nn.Module):
    def forward(self, a_1: "f32[3, 4][4, 1]cpu"):
        # No stacktrace found for following nodes
        mul_: "f32[3, 4][4, 1]cpu" = torch.ops.aten.mul_.Tensor(a_1, 3);  a_1 = None
        select: "f32[4][1]cpu" = torch.ops.aten.select.int(mul_, 0, 0)
        t: "f32[4, 3][1, 4]cpu" = torch.ops.aten.t.default(mul_)
        mul: "f32[4, 3][1, 4]cpu" = torch.ops.aten.mul.Tensor(t, 2);  t = None
        return (mul_, select, mul)
