class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[5][1]cpu"):
        # File: small.py:7 in <lambda>, code: g=torch.compile(lambda x: x.add_(1).sin())
        add: "f32[5][1]cpu" = torch.ops.aten.add.Tensor(arg0_1, 1)
        sin: "f32[5][1]cpu" = torch.ops.aten.sin.default(add)
        copy_: "f32[5][1]cpu" = torch.ops.aten.copy_.default(arg0_1, add);  arg0_1 = add = copy_ = None
        return (sin,)

