class GraphModule(torch.nn.Module):
    def forward(self, L_self_parameters_w_: "f32[3, 4][4, 1]cpu", L_self_parameters_v_: "f32[4][1]cpu", L_self_buffers_n_: "f32[][]cpu", L_self_buffers_avg_: "f32[3][1]cpu", L_a_0_: "f32[2, 3][3, 1]cpu"):
        l_self_parameters_w__1 = L_self_parameters_w_
        l_self_parameters_v__1 = L_self_parameters_v_
        l_self_buffers_n_ = L_self_buffers_n_
        l_self_buffers_avg_ = L_self_buffers_avg_
        l_a_0_ = L_a_0_
        matmul: "f32[2, 4][4, 1]cpu" = l_a_0_ @ l_self_parameters_w__1;  l_a_0_ = l_self_parameters_w__1 = None
        add: "f32[2, 4][4, 1]cpu" = matmul + l_self_parameters_v__1;  matmul = l_self_parameters_v__1 = None
        y: "f32[2, 4][4, 1]cpu" = add.relu();  add = None
        detach: "f32[2, 4][4, 1]cpu" = y.detach()
        argmax: "i64[2][1]cpu" = detach.argmax(1);  detach = None
        sum_1: "f32[][]cpu" = y.sum();  y = None
        return (argmax, sum_1)
