class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3, 4][4, 1]cpu", L_w_: "f32[4, 4][4, 1]cpu"):
        l_x_ = L_x_
        l_w_ = L_w_

        # No stacktrace found for following nodes
        _enter_autocast = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)

        wrap_body_0 = self.wrap_body_0
        tag_activation_checkpoint = torch.ops.higher_order.tag_activation_checkpoint(wrap_body_0, l_x_, l_w_, use_reentrant = False);  wrap_body_0 = l_x_ = l_w_ = None
        getitem: "f32[3, 4][4, 1]cpu" = tag_activation_checkpoint[0];  tag_activation_checkpoint = None

        # No stacktrace found for following nodes
        _exit_autocast = torch.amp.autocast_mode._exit_autocast(_enter_autocast);  _enter_autocast = _exit_autocast = None
        return (getitem,)

    class wrap_body_0(torch.nn.Module):
        def forward(self, l_x_: "f32[3, 4][4, 1]cpu", l_w_: "f32[4, 4][4, 1]cpu"):
            v: "bf16[3, 4][4, 1]cpu" = l_x_ @ l_w_;  l_x_ = None
            fwd_body_0 = self.fwd_body_0
            bwd_body_0 = self.bwd_body_0
            autograd_function_apply = torch.ops.higher_order.autograd_function_apply(fwd_body_0, bwd_body_0, v, l_w_, non_differentiable_idx = [], saved_for_backward_idx = [0, 1]);  fwd_body_0 = bwd_body_0 = v = l_w_ = None
            getitem: "f32[3, 4][4, 1]cpu" = autograd_function_apply[0];  autograd_function_apply = None
            float_1: "f32[3, 4][4, 1]cpu" = getitem.float();  getitem = None
            return (float_1,)

        class fwd_body_0(torch.nn.Module):
            def forward(self, v: "bf16[3, 4][4, 1]cpu", l_w_: "f32[4, 4][4, 1]cpu"):
                # No stacktrace found for following nodes
                _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None
                _enter_autocast = torch.amp.autocast_mode._enter_autocast('cpu', None, False, None)

                x: "f32[3, 4][4, 1]cpu" = v.to(torch.float32);  v = None
                w: "f32[4, 4][4, 1]cpu" = l_w_.to(torch.float32);  l_w_ = None

                outs: "f32[3, 4][4, 1]cpu" = x @ w

                # No stacktrace found for following nodes
                _exit_autocast = torch.amp.autocast_mode._exit_autocast(_enter_autocast);  _enter_autocast = _exit_autocast = None
                _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None
                return ((outs,), (w, x))

        class bwd_body_0(torch.nn.Module):
            def forward(self, g: "f32[3, 4][4, 1]cpu", w: "f32[4, 4][4, 1]cpu", x: "f32[3, 4][4, 1]cpu"):
                # No stacktrace found for following nodes
                _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None
                _enter_autocast = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, False, None)

                t: "f32[4, 4][1, 4]cpu" = w.t();  w = None
                matmul: "f32[3, 4][4, 1]cpu" = g @ t;  t = None
                t_1: "f32[4, 3][1, 4]cpu" = x.t();  x = None
                matmul_1: "f32[4, 4][4, 1]cpu" = t_1 @ g;  t_1 = g = None

                # No stacktrace found for following nodes
                _exit_autocast = torch.amp.autocast_mode._exit_autocast(_enter_autocast);  _enter_autocast = _exit_autocast = None
                _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None
                return (matmul, matmul_1)
