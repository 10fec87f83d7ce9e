class GraphModule(torch.nn.Module):
    def forward(self, L_self_buffers_n_: "f32[][]cpu", L_self_buffers_avg_: "f32[3][1]cpu", L_a_0_: "f32[2, 3][3, 1]cpu", L_self_parameters_w_: "f32[3, 4][4, 1]cpu", L_self_parameters_v_: "f32[4][1]cpu"):
        l_self_buffers_n_ = L_self_buffers_n_
        l_self_buffers_avg_ = L_self_buffers_avg_
        l_a_0_ = L_a_0_
        l_self_parameters_w_ = L_self_parameters_w_
        l_self_parameters_v_ = L_self_parameters_v_
        add_: "f32[][]cpu" = l_self_buffers_n_.add_(1);  add_ = None
        mul_: "f32[3][1]cpu" = l_self_buffers_avg_.mul_(0.9)
        mean: "f32[3][1]cpu" = l_a_0_.mean(0)
        add__1: "f32[3][1]cpu" = mul_.add_(mean, alpha = 0.1);  mul_ = mean = add__1 = None
        sub: "f32[2, 3][3, 1]cpu" = l_a_0_ - l_self_buffers_avg_;  l_a_0_ = l_self_buffers_avg_ = None
        matmul: "f32[2, 4][4, 1]cpu" = sub @ l_self_parameters_w_;  sub = l_self_parameters_w_ = None
        add: "f32[2, 4][4, 1]cpu" = matmul + l_self_parameters_v_;  matmul = l_self_parameters_v_ = None
        sum_1: "f32[][]cpu" = add.sum();  add = None
        mul: "f32[][]cpu" = sum_1 * l_self_buffers_n_;  sum_1 = l_self_buffers_n_ = None
        return (mul,)
