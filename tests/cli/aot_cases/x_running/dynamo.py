class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[6, 4][4, 1]cpu", L_r_: "f32[4][1]cpu"):
        l_x_ = L_x_
        l_r_ = L_r_

        # File: cases.py:229 in x_running, code: y = x - r; r.mul_(0.9).add_(x.mean(0), alpha=0.1); z = x / (r.abs() + 1); return y, z.sum(0)
        y: "f32[6, 4][4, 1]cpu" = l_x_ - l_r_
        mul_: "f32[4][1]cpu" = l_r_.mul_(0.9)
        mean: "f32[4][1]cpu" = l_x_.mean(0)
        add_: "f32[4][1]cpu" = mul_.add_(mean, alpha = 0.1);  mul_ = mean = add_ = None
        abs_1: "f32[4][1]cpu" = l_r_.abs();  l_r_ = None
        add: "f32[4][1]cpu" = abs_1 + 1;  abs_1 = None
        z: "f32[6, 4][4, 1]cpu" = l_x_ / add;  l_x_ = add = None
        sum_1: "f32[4][1]cpu" = z.sum(0);  z = None
        return (y, sum_1)
