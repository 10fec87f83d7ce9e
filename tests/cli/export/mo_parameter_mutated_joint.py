class GraphModule(torch.nn.Module):
    def forward(self, L_self_parameters_w_: "f32[3][1]cpu", L_self_buffers_b_: "f32[3][1]cpu", L_a_0_: "f32[3][1]cpu"):
        l_self_parameters_w__1 = L_self_parameters_w_
        l_self_buffers_b_ = L_self_buffers_b_
        l_a_0_ = L_a_0_
        # No stacktrace found for following nodes
        _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None
        add_: "f32[3][1]cpu" = l_self_parameters_w__1.add_(1);  add_ = None
        # No stacktrace found for following nodes
        _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None
        mul: "f32[3][1]cpu" = l_a_0_ * l_self_parameters_w__1;  l_a_0_ = l_self_parameters_w__1 = None
        sum_1: "f32[][]cpu" = mul.sum();  mul = None
        return (sum_1,)
