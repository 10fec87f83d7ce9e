class m_swap(torch.nn.Module):
    def forward(self, x_1: "f32[2, 3][3, 1]cpu"):
        # No stacktrace found for following nodes
        swapaxes_: "f32[3, 2][1, 3]cpu" = torch.ops.aten.swapaxes_.default(x_1, 0, 1);  x_1 = None
        unsqueeze_: "f32[3, 2, 1][1, 3, 1]cpu" = torch.ops.aten.unsqueeze_.default(swapaxes_, -1);  swapaxes_ = None
        add_: "f32[3, 2, 1][1, 3, 1]cpu" = torch.ops.aten.add_.Tensor(unsqueeze_, 1);  unsqueeze_ = None
        flatten: "f32[6][1]cpu" = torch.ops.aten.flatten.using_ints(add_);  add_ = None
        return flatten
