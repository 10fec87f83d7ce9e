class GraphModule(torch.nn.Module):
    def forward(self, L_avg_: "f32[4, 3][3, 1]cpu", L_x_: "f32[4, 3][3, 1]cpu"):
        l_avg_ = L_avg_
        l_x_ = L_x_

        # File: cases.py:39 in w_ema_old, code: old = avg.clone(); avg.mul_(0.9).add_(x, alpha=0.1); return x - avg, old, old * avg
        old: "f32[4, 3][3, 1]cpu" = l_avg_.clone()
        mul_: "f32[4, 3][3, 1]cpu" = l_avg_.mul_(0.9)
        add_: "f32[4, 3][3, 1]cpu" = mul_.add_(l_x_, alpha = 0.1);  mul_ = add_ = None
        sub: "f32[4, 3][3, 1]cpu" = l_x_ - l_avg_;  l_x_ = None
        mul: "f32[4, 3][3, 1]cpu" = old * l_avg_;  l_avg_ = None
        return (sub, old, mul)
