class <lambda>(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[3][1]cpu"; tangents_1: "f32[3][1]cpu";
        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        # No stacktrace found for following nodes
        sin: "f32[3][1]cpu" = torch.ops.aten.sin.default(primals_1)
        mul: "f32[3][1]cpu" = torch.ops.aten.mul.Tensor(sin, tangents_1);  sin = None
        cos: "f32[3][1]cpu" = torch.ops.aten.cos.default(primals_1);  primals_1 = None
        mul_1: "f32[3][1]cpu" = torch.ops.aten.mul.Tensor(cos, tangents_1);  cos = tangents_1 = None
        return pytree.tree_unflatten([mul, mul_1], self._out_spec)
