class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[2, 3][3, 1]cpu", L_y_: "f32[3][1]cpu"):
        l_x_ = L_x_
        l_y_ = L_y_
        # No stacktrace found for following nodes
        mul: "f32[2, 3][3, 1]cpu" = l_x_ * l_y_
        add: "f32[2, 3][3, 1]cpu" = l_x_ + l_y_;  l_x_ = l_y_ = None
        sum_1: "f32[3][1]cpu" = add.sum(0);  add = None
        return (mul, sum_1)
