class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[4, 3][3, 1]cpu", primals_2: "f32[3, 2][2, 1]cpu"):
        # File: small.py:5 in f, code: def f(x): return (x@w).tanh()
        mm: "f32[4, 2][2, 1]cpu" = torch.ops.aten.mm.default(primals_1, primals_2);  primals_2 = None
        tanh: "f32[4, 2][2, 1]cpu" = torch.ops.aten.tanh.default(mm);  mm = None
        permute: "f32[3, 4][1, 3]cpu" = torch.ops.aten.permute.default(primals_1, [1, 0]);  primals_1 = None
        return (tanh, tanh, permute)

