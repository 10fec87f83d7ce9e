class y_mix(torch.nn.Module):
    def forward(self, a_1: "f32[3, 4][4, 1]cpu", b_1: "f32[4, 3][3, 1]cpu", c_1: "f32[3][1]cpu"):
        # No stacktrace found for following nodes
        fill_: "f32[3][1]cpu" = torch.ops.aten.fill_.Scalar(c_1, 1);  c_1 = None
        select: "f32[4][1]cpu" = torch.ops.aten.select.int(a_1, 0, 0)
        select_1: "f32[4][3]cpu" = torch.ops.aten.select.int(b_1, 1, 0)
        add_: "f32[4][1]cpu" = torch.ops.aten.add_.Tensor(select, select_1);  select = select_1 = add_ = None
        sum_1: "f32[3][1]cpu" = torch.ops.aten.sum.dim_IntList(a_1, [1]);  a_1 = None
        t: "f32[3, 4][1, 3]cpu" = torch.ops.aten.t.default(b_1)
        select_2: "f32[3][1]cpu" = torch.ops.aten.select.int(b_1, 0, 0);  b_1 = None
        add: "f32[3][1]cpu" = torch.ops.aten.add.Tensor(fill_, select_2);  fill_ = select_2 = None
        return (sum_1, t, add)
