class g_meta_data_grad2(torch.nn.Module):
    def forward(self, a_1: "f32[2, 6][6, 1]cpu"):
        # No stacktrace found for following nodes
        t_: "f32[6, 2][1, 6]cpu" = torch.ops.aten.t_.default(a_1);  a_1 = None
        mul_: "f32[6, 2][1, 6]cpu" = torch.ops.aten.mul_.Tensor(t_, 2);  t_ = None
        unsqueeze_: "f32[1, 6, 2][6, 1, 6]cpu" = torch.ops.aten.unsqueeze_.default(mul_, 0);  mul_ = None
        sin: "f32[1, 6, 2][6, 1, 6]cpu" = torch.ops.aten.sin.default(unsqueeze_);  unsqueeze_ = None
        return sin
