class s_meta_of_view(torch.nn.Module):
    def forward(self, a_1: "f32[12][1]cpu", b_1: "f32[3, 4][4, 1]cpu"):
        # No stacktrace found for following nodes
        t_: "f32[4, 3][1, 4]cpu" = torch.ops.aten.t_.default(b_1);  b_1 = None
        add_: "f32[12][1]cpu" = torch.ops.aten.add_.Tensor(a_1, 1);  a_1 = add_ = None
        mul: "f32[4, 3][1, 4]cpu" = torch.ops.aten.mul.Tensor(t_, 2);  t_ = None
        return mul
