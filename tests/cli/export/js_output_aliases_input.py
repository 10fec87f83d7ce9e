class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3, 2][2, 1]cpu"):
        l_x_ = L_x_
        # No stacktrace found for following nodes
        view: "f32[6][1]cpu" = l_x_.view(-1)
        add: "f32[3, 2][2, 1]cpu" = l_x_ + 1;  l_x_ = None
        return (view, add)
