class GraphModule(torch.nn.Module):
    def forward(self, L_xs_: "f32[5, 3][3, 1]cpu", L_ys_: "f32[5][1]cpu", L_w_: "f32[3][1]cpu"):
        l_xs_ = L_xs_
        l_ys_ = L_ys_
        l_w_ = L_w_

        map_body_0 = self.map_body_0
        map_impl = torch.ops.higher_order.map_impl(map_body_0, [l_xs_, l_ys_], [l_w_]);  map_body_0 = l_xs_ = l_ys_ = l_w_ = None
        a: "f32[5, 3][3, 1]cpu" = map_impl[0]
        b: "f32[5][1]cpu" = map_impl[1];  map_impl = None

        exp: "f32[5][1]cpu" = b.exp();  b = None
        return (a, exp)

    class map_body_0(torch.nn.Module):
        def forward(self, child: "f32[3][1]cpu", child_1: "f32[][]cpu", l_w_: "f32[3][1]cpu"):
            mul: "f32[3][1]cpu" = child * l_w_;  l_w_ = None
            sin: "f32[3][1]cpu" = mul.sin();  mul = None
            child_2: "f32[3][1]cpu" = sin * child_1;  sin = child_1 = None
            child_3: "f32[][]cpu" = child.sum();  child = None
            return (child_2, child_3)
