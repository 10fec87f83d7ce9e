class y_meta_grad(torch.nn.Module):
    def forward(self, x_1: "f32[2, 6][6, 1]cpu"):
        # No stacktrace found for following nodes
        mul: "f32[2, 6][6, 1]cpu" = torch.ops.aten.mul.Tensor(x_1, 3)
        unsqueeze_: "f32[1, 2, 6][12, 6, 1]cpu" = torch.ops.aten.unsqueeze_.default(x_1, 0);  x_1 = None
        squeeze_: "f32[2, 6][6, 1]cpu" = torch.ops.aten.squeeze_.dim(unsqueeze_, 0);  unsqueeze_ = None
        t_: "f32[6, 2][1, 6]cpu" = torch.ops.aten.t_.default(squeeze_);  squeeze_ = None
        t: "f32[6, 2][1, 6]cpu" = torch.ops.aten.t.default(mul)
        add_: "f32[6, 2][1, 6]cpu" = torch.ops.aten.add_.Tensor(t_, t);  t_ = t = None
        select: "f32[2][6]cpu" = torch.ops.aten.select.int(add_, 0, 1);  add_ = None
        return (select, mul)
