class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3][1]cpu"):
        l_x_ = L_x_
        # No stacktrace found for following nodes
        mul_: "f32[3][1]cpu" = l_x_.mul_(2);  mul_ = None
        sin: "f32[3][1]cpu" = l_x_.sin();  l_x_ = None
        return (sin,)
