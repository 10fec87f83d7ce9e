class <lambda>(torch.nn.Module):
    def forward(self, primals_1_1: "f32[3][1]cpu", tangents_1_1: "f32[3][1]cpu"):
        # No stacktrace found for following nodes
        sin: "f32[3][1]cpu" = torch.ops.aten.sin.default(primals_1_1)
        mul: "f32[3][1]cpu" = torch.ops.aten.mul.Tensor(sin, tangents_1_1);  sin = None
        cos: "f32[3][1]cpu" = torch.ops.aten.cos.default(primals_1_1);  primals_1_1 = None
        mul_1: "f32[3][1]cpu" = torch.ops.aten.mul.Tensor(cos, tangents_1_1);  cos = tangents_1_1 = None
        return [mul, mul_1]
