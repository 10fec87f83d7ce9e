class GraphModule(torch.nn.Module):
    def forward(self, L_init_: "f32[2, 3][3, 1]cpu", L_xs_: "f32[4, 2, 3][6, 3, 1]cpu", L_w_: "f32[3, 3][3, 1]cpu"):
        l_init_ = L_init_
        l_xs_ = L_xs_
        l_w_ = L_w_

        scan_combine_fn_0 = self.scan_combine_fn_0
        scan = torch.ops.higher_order.scan(scan_combine_fn_0, [l_init_], [l_xs_], [l_w_]);  scan_combine_fn_0 = l_init_ = l_xs_ = l_w_ = None
        carry: "f32[2, 3][3, 1]cpu" = scan[0]
        out: "f32[4, 2][2, 1]cpu" = scan[1];  scan = None

        sum_1: "f32[][]cpu" = carry.sum();  carry = None
        return (sum_1, out)

    class scan_combine_fn_0(torch.nn.Module):
        def forward(self, child: "f32[2, 3][3, 1]cpu", child_1: "f32[2, 3][3, 1]cpu", l_w_: "f32[3, 3][3, 1]cpu"):
            mul: "f32[2, 3][3, 1]cpu" = child * 0.5;  child = None
            add: "f32[2, 3][3, 1]cpu" = mul + child_1;  mul = child_1 = None
            n: "f32[2, 3][3, 1]cpu" = add @ l_w_;  add = l_w_ = None

            child_2: "f32[2][1]cpu" = n.sum(1)
            return [n, child_2]
