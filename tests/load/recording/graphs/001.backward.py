class GraphModule(torch.nn.Module):
    def forward(self, tanh: "f32[4, 2][2, 1]cpu", permute: "f32[3, 4][1, 3]cpu", tangents_1: "f32[4, 2][2, 1]cpu"):
        # File: small.py:5 in f, code: def f(x): return (x@w).tanh()
        mul: "f32[4, 2][2, 1]cpu" = torch.ops.aten.mul.Tensor(tanh, tanh);  tanh = None
        sub: "f32[4, 2][2, 1]cpu" = torch.ops.aten.sub.Tensor(1, mul);  mul = None
        mul_1: "f32[4, 2][2, 1]cpu" = torch.ops.aten.mul.Tensor(tangents_1, sub);  tangents_1 = sub = None
        mm_1: "f32[3, 2][2, 1]cpu" = torch.ops.aten.mm.default(permute, mul_1);  permute = mul_1 = None
        return (None, mm_1)

