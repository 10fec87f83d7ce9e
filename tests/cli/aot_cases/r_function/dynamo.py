class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3, 4][4, 1]cpu", L_w_: "f32[4, 2][2, 1]cpu", L_z_: "f32[3, 4][4, 1]cpu"):
        l_x_ = L_x_
        l_w_ = L_w_
        l_z_ = L_z_

        fwd_body_0 = self.fwd_body_0
        bwd_body_0 = self.bwd_body_0
        autograd_function_apply = torch.ops.higher_order.autograd_function_apply(fwd_body_0, bwd_body_0, l_x_, l_w_, non_differentiable_idx = [], saved_for_backward_idx = [0, 1, 2]);  fwd_body_0 = bwd_body_0 = l_x_ = None
        getitem: "f32[3, 2][2, 1]cpu" = autograd_function_apply[0]
        getitem_1: "f32[3, 2][2, 1]cpu" = autograd_function_apply[1];  autograd_function_apply = None

        sum_1: "f32[][]cpu" = getitem.sum();  getitem = None
        fwd_body_1 = self.fwd_body_1
        bwd_body_1 = self.bwd_body_1
        autograd_function_apply_1 = torch.ops.higher_order.autograd_function_apply(fwd_body_1, bwd_body_1, l_z_, l_w_, non_differentiable_idx = [], saved_for_backward_idx = [0, 1]);  fwd_body_1 = bwd_body_1 = l_z_ = l_w_ = None
        getitem_2: "f32[3, 2][2, 1]cpu" = autograd_function_apply_1[0];  autograd_function_apply_1 = None
        mul: "f32[3, 2][2, 1]cpu" = getitem_1 * getitem_2;  getitem_1 = getitem_2 = None
        return (sum_1, mul)

    class fwd_body_0(torch.nn.Module):
        def forward(self, l_x_: "f32[3, 4][4, 1]cpu", l_w_: "f32[4, 2][2, 1]cpu"):
            # No stacktrace found for following nodes
            _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

            matmul: "f32[3, 2][2, 1]cpu" = l_x_ @ l_w_
            y: "f32[3, 2][2, 1]cpu" = matmul * 2.0;  matmul = None

            out: "f32[3, 2][2, 1]cpu" = y.relu()

            # No stacktrace found for following nodes
            _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None
            return ((y, out), (y, l_w_, l_x_))

    class bwd_body_0(torch.nn.Module):
        def forward(self, a: "f32[3, 2][2, 1]cpu", b: "f32[3, 2][2, 1]cpu", y: "f32[3, 2][2, 1]cpu", l_w_: "f32[4, 2][2, 1]cpu", l_x_: "f32[3, 4][4, 1]cpu"):
            # No stacktrace found for following nodes
            _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

            g: "f32[3, 2][2, 1]cpu" = a.clone();  a = None

            gt: "b8[3, 2][2, 1]cpu" = y > 0
            mul: "f32[3, 2][2, 1]cpu" = b * gt;  b = gt = None
            add_: "f32[3, 2][2, 1]cpu" = g.add_(mul);  mul = None
            mul_: "f32[3, 2][2, 1]cpu" = add_.mul_(3);  add_ = mul_ = None

            gt_1: "b8[3, 2][2, 1]cpu" = y > 1;  y = None
            g[gt_1] = 0.5;  setitem = g;  gt_1 = setitem = None

            t: "f32[2, 4][1, 2]cpu" = l_w_.t();  l_w_ = None
            matmul: "f32[3, 4][4, 1]cpu" = g @ t;  t = None
            t_1: "f32[4, 3][1, 4]cpu" = l_x_.t();  l_x_ = None
            matmul_1: "f32[4, 2][2, 1]cpu" = t_1 @ g;  t_1 = g = None

            # No stacktrace found for following nodes
            _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None
            return (matmul, matmul_1)

    class fwd_body_1(torch.nn.Module):
        def forward(self, l_z_: "f32[3, 4][4, 1]cpu", l_w_: "f32[4, 2][2, 1]cpu"):
            # No stacktrace found for following nodes
            _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

            matmul: "f32[3, 2][2, 1]cpu" = l_z_ @ l_w_;  l_w_ = None
            y: "f32[3, 2][2, 1]cpu" = matmul * 0.5;  matmul = None

            out: "f32[3, 2][2, 1]cpu" = y.relu()

            # No stacktrace found for following nodes
            _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None
            return ((y, out), (y, l_z_))

    class bwd_body_1(torch.nn.Module):
        def forward(self, a: "f32[3, 2][2, 1]cpu", b: "f32[3, 2][2, 1]cpu", y: "f32[3, 2][2, 1]cpu", l_z_: "f32[3, 4][4, 1]cpu"):
            # No stacktrace found for following nodes
            _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

            g: "f32[3, 2][2, 1]cpu" = a.clone();  a = None

            gt: "b8[3, 2][2, 1]cpu" = y > 0
            mul: "f32[3, 2][2, 1]cpu" = b * gt;  b = gt = None
            add_: "f32[3, 2][2, 1]cpu" = g.add_(mul);  mul = None
            mul_: "f32[3, 2][2, 1]cpu" = add_.mul_(3);  add_ = mul_ = None

            gt_1: "b8[3, 2][2, 1]cpu" = y > 1;  y = None
            g[gt_1] = 0.5;  setitem = g;  gt_1 = setitem = None

            t: "f32[4, 3][1, 4]cpu" = l_z_.t();  l_z_ = None
            matmul: "f32[4, 2][2, 1]cpu" = t @ g;  t = g = None

            # No stacktrace found for following nodes
            _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None
            return (None, matmul)
