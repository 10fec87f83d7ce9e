class o_input_and_views(torch.nn.Module):
    def forward(self, x_1: "f32[2, 3][3, 1]cpu"):
        # No stacktrace found for following nodes
        view: "f32[6][1]cpu" = torch.ops.aten.view.default(x_1, [-1])
        view_1: "f32[3, 2][2, 1]cpu" = torch.ops.aten.view.default(x_1, [3, 2])
        t: "f32[2, 3][1, 2]cpu" = torch.ops.aten.t.default(view_1);  view_1 = None
        mul: "f32[2, 3][3, 1]cpu" = torch.ops.aten.mul.Tensor(x_1, 1)
        return (x_1, view, t, mul)
