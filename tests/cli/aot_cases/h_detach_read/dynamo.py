class GraphModule(torch.nn.Module):
    def forward(self, L_w_: "f32[4][1]cpu", L_g_: "f32[4][1]cpu"):
        l_w_ = L_w_
        l_g_ = L_g_

        # File: cases.py:159 in h_detach_read, code: w.detach().sub_(0.1 * g); return (w * w).sum()
        detach: "f32[4][1]cpu" = l_w_.detach()
        mul: "f32[4][1]cpu" = 0.1 * l_g_;  l_g_ = None
        sub_: "f32[4][1]cpu" = detach.sub_(mul);  detach = mul = sub_ = None
        mul_1: "f32[4][1]cpu" = l_w_ * l_w_;  l_w_ = None
        sum_1: "f32[][]cpu" = mul_1.sum();  mul_1 = None
        return (sum_1,)
