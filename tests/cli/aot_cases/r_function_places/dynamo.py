class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3, 4][4, 1]cpu", L_z_: "f32[3, 4][4, 1]cpu"):
        l_x_ = L_x_
        l_z_ = L_z_

        arg: "f32[3, 4][4, 1]cpu" = l_x_ * 2
        fwd_body_0 = self.fwd_body_0
        bwd_body_0 = self.bwd_body_0
        autograd_function_apply = torch.ops.higher_order.autograd_function_apply(fwd_body_0, bwd_body_0, arg, non_differentiable_idx = [1], saved_for_backward_idx = [0]);  fwd_body_0 = bwd_body_0 = arg = None
        getitem: "f32[3, 1][1, 1]cpu" = autograd_function_apply[0]
        getitem_1: "i64[3, 1][1, 1]cpu" = autograd_function_apply[1];  autograd_function_apply = None

        # No stacktrace found for following nodes
        _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

        add: "f32[3, 4][4, 1]cpu" = l_x_ + l_z_;  l_x_ = None

        max_1 = add.max(1, keepdim = True);  add = None
        values: "f32[3, 1][1, 1]cpu" = max_1[0];  max_1 = None

        # No stacktrace found for following nodes
        _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None

        mul_1: "f32[3, 1][1, 1]cpu" = getitem * getitem_1;  getitem = None

        max_2 = l_z_.max(1, keepdim = True);  l_z_ = None
        values_1: "f32[3, 1][1, 1]cpu" = max_2[0];  max_2 = None

        mul_2: "f32[3, 1][1, 1]cpu" = values_1 * values;  values_1 = values = None
        add_1: "f32[3, 1][1, 1]cpu" = mul_1 + mul_2;  mul_1 = mul_2 = None
        return (add_1, getitem_1)

    class fwd_body_0(torch.nn.Module):
        def forward(self, mul: "f32[3, 4][4, 1]cpu"):
            # No stacktrace found for following nodes
            _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

            max_1 = mul.max(1, keepdim = True);  mul = None
            values: "f32[3, 1][1, 1]cpu" = max_1[0]
            places: "i64[3, 1][1, 1]cpu" = max_1[1];  max_1 = None

            # No stacktrace found for following nodes
            _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None
            return ((values, places), (places,))

    class bwd_body_0(torch.nn.Module):
        def forward(self, values: "f32[3, 1][1, 1]cpu", places: "i64[3, 1][1, 1]cpu", places_0: "i64[3, 1][1, 1]cpu"):
            # No stacktrace found for following nodes
            _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

            zeros: "f32[3, 4][4, 1]cpu" = torch.zeros((3, 4))
            scatter: "f32[3, 4][4, 1]cpu" = zeros.scatter(1, places_0, values);  zeros = places_0 = values = None

            # No stacktrace found for following nodes
            _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None
            return (scatter,)
