class GraphModule(torch.nn.Module):
    def forward(self, L_init_: "f32[3][1]cpu", L_xs_: "f32[4, 3][3, 1]cpu", L_w_: "f32[3][1]cpu"):
        l_init_ = L_init_
        l_xs_ = L_xs_
        l_w_ = L_w_

        scan_combine_fn_0 = self.scan_combine_fn_0
        scan = torch.ops.higher_order.scan(scan_combine_fn_0, [l_init_], [l_xs_], [l_w_]);  scan_combine_fn_0 = l_init_ = l_xs_ = l_w_ = None
        carry: "f32[3][1]cpu" = scan[0]
        out: "f32[4, 3][3, 1]cpu" = scan[1];  scan = None
        return (carry, out)

    class scan_combine_fn_0(torch.nn.Module):
        def forward(self, child: "f32[3][1]cpu", child_1: "f32[3][1]cpu", l_w_: "f32[3][1]cpu"):
            mul: "f32[3][1]cpu" = child * l_w_;  l_w_ = None
            child_2: "f32[3][1]cpu" = mul + child_1;  mul = None
            child_3: "f32[3][1]cpu" = child - child_1;  child = child_1 = None
            return [child_2, child_3]
