class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[3][1]cpu"):
        # No stacktrace found for following nodes
        add: "f32[3][1]cpu" = x + 1
        mul: "f32[3][1]cpu" = x * 2;  x = None
        return (add, [mul])
