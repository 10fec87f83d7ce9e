class GraphModule(torch.nn.Module):
    def forward(self, L_self_parameters_w_: "f32[3][1]cpu", L_self_buffers_b_: "f32[3][1]cpu", L_a_0_: "f32[3][1]cpu"):
        l_self_parameters_w__1 = L_self_parameters_w_
        l_self_buffers_b_ = L_self_buffers_b_
        l_a_0_ = L_a_0_
        mul: "f32[3][1]cpu" = l_a_0_ * l_self_parameters_w__1;  l_a_0_ = l_self_parameters_w__1 = None
        sum_1: "f32[][]cpu" = mul.sum();  mul = None
        return (sum_1,)
