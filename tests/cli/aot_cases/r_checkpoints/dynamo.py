class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3, 3][3, 1]cpu", L_w_: "f32[3, 3][3, 1]cpu"):
        l_x_ = L_x_
        l_w_ = L_w_

        wrap_body_0 = self.wrap_body_0
        tag_activation_checkpoint = torch.ops.higher_order.tag_activation_checkpoint(wrap_body_0, l_x_, l_w_, use_reentrant = False);  wrap_body_0 = l_x_ = None
        y: "f32[3, 3][3, 1]cpu" = tag_activation_checkpoint[0];  tag_activation_checkpoint = None

        wrap_body_1 = self.wrap_body_1
        tag_activation_checkpoint_1 = torch.ops.higher_order.tag_activation_checkpoint(wrap_body_1, y, l_w_, use_reentrant = False);  wrap_body_1 = y = l_w_ = None
        getitem_1: "f32[3, 3][3, 1]cpu" = tag_activation_checkpoint_1[0];  tag_activation_checkpoint_1 = None
        return (getitem_1,)

    class wrap_body_0(torch.nn.Module):
        def forward(self, l_x_: "f32[3, 3][3, 1]cpu", l_w_: "f32[3, 3][3, 1]cpu"):
            matmul: "f32[3, 3][3, 1]cpu" = l_x_ @ l_w_;  l_x_ = l_w_ = None
            relu: "f32[3, 3][3, 1]cpu" = torch.relu(matmul);  matmul = None
            sin: "f32[3, 3][3, 1]cpu" = relu.sin();  relu = None
            return (sin,)

    class wrap_body_1(torch.nn.Module):
        def forward(self, y: "f32[3, 3][3, 1]cpu", l_w_: "f32[3, 3][3, 1]cpu"):
            matmul: "f32[3, 3][3, 1]cpu" = y @ l_w_;  l_w_ = None
            cos: "f32[3, 3][3, 1]cpu" = matmul.cos();  matmul = None
            add: "f32[3, 3][3, 1]cpu" = cos + y;  cos = y = None
            return (add,)
