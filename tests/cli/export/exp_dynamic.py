class GraphModule(torch.nn.Module):
    def forward(self, L_self_parameters_w_: "f32[3, 4][4, 1]cpu", L_self_parameters_v_: "f32[4][1]cpu", L_self_buffers_n_: "f32[][]cpu", L_self_buffers_avg_: "f32[3][1]cpu", s10: "Sym(s10)", s21: "Sym(s21)", L_a_0_: "f32[s10, s21][s21, 1]cpu"):
        l_self_parameters_w_ = L_self_parameters_w_
        l_self_parameters_v_ = L_self_parameters_v_
        l_self_buffers_n_ = L_self_buffers_n_
        l_self_buffers_avg_ = L_self_buffers_avg_
        l_a_0_ = L_a_0_
        reshape: "f32[s10*s21][1]cpu" = l_a_0_.reshape(-1);  l_a_0_ = None
        getitem_2: "f32[s10][1]cpu" = reshape[slice(None, s10, None)];  reshape = s10 = None
        mul: "f32[s10][1]cpu" = getitem_2 * s21;  getitem_2 = s21 = None
        return (mul,)
