class GraphModule(torch.nn.Module):
    def forward(self, L_xs_: "f32[5, 3, 2][6, 2, 1]cpu", L_w_: "f32[2, 3][3, 1]cpu"):
        l_xs_ = L_xs_
        l_w_ = L_w_

        map_body_0 = self.map_body_0
        map_impl = torch.ops.higher_order.map_impl(map_body_0, [l_xs_], [l_w_]);  map_body_0 = l_xs_ = l_w_ = None
        getitem: "f32[5, 3, 3][9, 3, 1]cpu" = map_impl[0];  map_impl = None
        return (getitem,)

    class map_body_0(torch.nn.Module):
        def forward(self, child: "f32[3, 2][2, 1]cpu", l_w_: "f32[2, 3][3, 1]cpu"):
            matmul: "f32[3, 3][3, 1]cpu" = child @ l_w_;  child = l_w_ = None
            relu: "f32[3, 3][3, 1]cpu" = torch.relu(matmul);  matmul = None
            t: "f32[3, 3][1, 3]cpu" = relu.t();  relu = None
            contiguous: "f32[3, 3][3, 1]cpu" = t.contiguous();  t = None
            return (contiguous,)
