class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[6][1]cpu"):
        l_x_ = L_x_
        view: "f32[3, 2][2, 1]cpu" = l_x_.view(3, 2);  l_x_ = None
        add: "f32[3, 2][2, 1]cpu" = view + 1;  view = None
        return (add,)
