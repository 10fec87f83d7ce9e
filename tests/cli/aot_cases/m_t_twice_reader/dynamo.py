class m_t_twice_reader(torch.nn.Module):
    def forward(self, x_1: "f32[3, 4][4, 1]cpu"):
        # No stacktrace found for following nodes
        t_: "f32[4, 3][1, 4]cpu" = torch.ops.aten.t_.default(x_1);  x_1 = None
        unsqueeze_: "f32[1, 4, 3][4, 1, 4]cpu" = torch.ops.aten.unsqueeze_.default(t_, 0);  t_ = None
        mul: "f32[1, 4, 3][4, 1, 4]cpu" = torch.ops.aten.mul.Tensor(unsqueeze_, 1)
        add: "f32[1, 4, 3][4, 1, 4]cpu" = torch.ops.aten.add.Tensor(unsqueeze_, 1)
        sum_1: "f32[][]cpu" = torch.ops.aten.sum.default(unsqueeze_);  unsqueeze_ = None
        return (mul, add, sum_1)
