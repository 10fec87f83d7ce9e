class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[3, 2][2, 1]cpu"):
        # No stacktrace found for following nodes
        t_: "f32[2, 3][1, 2]cpu" = x.t_();  t_ = None
        add: "f32[2, 3][1, 2]cpu" = x + 1;  x = None
        return (add,)
