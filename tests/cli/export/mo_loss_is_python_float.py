class OneArgument(torch.nn.Module):
    def forward(self, L_self_parameters_w_: "f32[3][1]cpu", L_self_buffers_b_: "f32[3][1]cpu", x: "f32[3][1]cpu"):
        l_self_parameters_w__1 = L_self_parameters_w_
        l_self_buffers_b_ = L_self_buffers_b_
        # No stacktrace found for following nodes
        mul: "f32[3][1]cpu" = x * l_self_parameters_w__1;  x = l_self_parameters_w__1 = None
        detach: "f32[3][1]cpu" = mul.detach();  mul = None
        return (1.0, detach)
