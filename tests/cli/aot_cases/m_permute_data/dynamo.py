class m_permute_data(torch.nn.Module):
    def forward(self, x_1: "f32[3, 4, 2][8, 2, 1]cpu"):
        # No stacktrace found for following nodes
        transpose_: "f32[3, 2, 4][8, 1, 2]cpu" = torch.ops.aten.transpose_.default(x_1, 1, 2);  x_1 = None
        mul_: "f32[3, 2, 4][8, 1, 2]cpu" = torch.ops.aten.mul_.Tensor(transpose_, 2);  transpose_ = None
        select: "f32[2, 4][1, 2]cpu" = torch.ops.aten.select.int(mul_, 0, 0);  mul_ = None
        return select
