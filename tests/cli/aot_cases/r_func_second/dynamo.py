class GraphModule(torch.nn.Module):
    def forward(self, L_v_: "f32[9][1]cpu", L_x_: "f32[2, 3, 6, 6][108, 36, 6, 1]cpu", L_w_: "f32[4, 3, 3, 3][27, 9, 3, 1]cpu", L_b_: "f32[4][1]cpu"):
        l_v_ = L_v_
        l_x_ = L_x_
        l_w_ = L_w_
        l_b_ = L_b_

        # No stacktrace found for following nodes
        _saved_tensors_hooks_disable = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable = None
        _grad_increment_nesting = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting = None

        child: "f32[2, 3, 6, 6][108, 36, 6, 1]cpu" = torch._C._functorch._wrap_for_grad(l_x_, 1);  l_x_ = None
        child_1: "f32[4, 3, 3, 3][27, 9, 3, 1]cpu" = torch._C._functorch._wrap_for_grad(l_w_, 1);  l_w_ = None
        child_2: "f32[4][1]cpu" = torch._C._functorch._wrap_for_grad(l_b_, 1);  l_b_ = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed = None

        _set_tensor_requires_grad: "f32[2, 3, 6, 6][108, 36, 6, 1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(child);  _set_tensor_requires_grad = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_1 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_1 = None
        set_inplace_requires_grad_allowed_2 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_2 = None

        _set_tensor_requires_grad_1: "f32[4, 3, 3, 3][27, 9, 3, 1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(child_1);  _set_tensor_requires_grad_1 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_3 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_3 = None
        set_inplace_requires_grad_allowed_4 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_4 = None

        _set_tensor_requires_grad_2: "f32[4][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(child_2);  _set_tensor_requires_grad_2 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_5 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_5 = None

        y: "f32[2, 4, 3, 3][36, 9, 3, 1]cpu" = torch.conv2d(child, child_1, child_2, stride = 2, padding = 1)

        view: "f32[3, 3][3, 1]cpu" = l_v_.view(3, 3)
        layer_norm: "f32[2, 4, 3, 3][36, 9, 3, 1]cpu" = torch.nn.functional.layer_norm(y, (3, 3), view);  y = view = None
        tanh: "f32[2, 4, 3, 3][36, 9, 3, 1]cpu" = layer_norm.tanh();  layer_norm = None
        output: "f32[][]cpu" = tanh.sum();  tanh = None

        _autograd_grad = torch._functorch.eager_transforms._autograd_grad((output,), [child, child_1, child_2], create_graph = True);  child = child_1 = child_2 = None
        getitem: "f32[2, 3, 6, 6][108, 36, 6, 1]cpu" = _autograd_grad[0]
        getitem_1: "f32[4, 3, 3, 3][27, 9, 3, 1]cpu" = _autograd_grad[1]
        getitem_2: "f32[4][1]cpu" = _autograd_grad[2];  _autograd_grad = None

        gx: "f32[2, 3, 6, 6][108, 36, 6, 1]cpu" = torch._functorch.predispatch._unwrap_for_grad(getitem, 1);  getitem = None
        gw: "f32[4, 3, 3, 3][27, 9, 3, 1]cpu" = torch._functorch.predispatch._unwrap_for_grad(getitem_1, 1);  getitem_1 = None
        gb: "f32[4][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(getitem_2, 1);  getitem_2 = None
        output_1: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output, 1);  output = output_1 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting = None
        _saved_tensors_hooks_enable = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable = None
        _saved_tensors_hooks_disable_1 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_1 = None
        _grad_increment_nesting_1 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_1 = None

        diff_args: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_6 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_6 = None

        _set_tensor_requires_grad_3: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args);  _set_tensor_requires_grad_3 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_7 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_7 = None

        gelu: "f32[9][1]cpu" = torch._C._nn.gelu(diff_args)
        pow_1: "f32[9][1]cpu" = gelu.pow(2);  gelu = None
        output_2: "f32[][]cpu" = pow_1.sum();  pow_1 = None

        _autograd_grad_1 = torch._functorch.eager_transforms._autograd_grad((output_2,), [diff_args], create_graph = True);  diff_args = None
        grad_input: "f32[9][1]cpu" = _autograd_grad_1[0];  _autograd_grad_1 = None

        grad_input_1: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input, 1);  grad_input = None
        output_3: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_2, 1);  output_2 = output_3 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_1 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_1 = None
        _saved_tensors_hooks_enable_1 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_1 = None
        _saved_tensors_hooks_disable_2 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_2 = None
        _grad_increment_nesting_2 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_2 = None

        diff_args_1: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_8 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_8 = None

        _set_tensor_requires_grad_4: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_1);  _set_tensor_requires_grad_4 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_9 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_9 = None

        gelu_1: "f32[9][1]cpu" = torch._C._nn.gelu(diff_args_1, approximate = 'tanh')

        pow_2: "f32[9][1]cpu" = gelu_1.pow(2);  gelu_1 = None
        output_4: "f32[][]cpu" = pow_2.sum();  pow_2 = None

        _autograd_grad_2 = torch._functorch.eager_transforms._autograd_grad((output_4,), [diff_args_1], create_graph = True);  diff_args_1 = None
        grad_input_2: "f32[9][1]cpu" = _autograd_grad_2[0];  _autograd_grad_2 = None

        grad_input_3: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_2, 1);  grad_input_2 = None
        output_5: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_4, 1);  output_4 = output_5 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_2 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_2 = None
        _saved_tensors_hooks_enable_2 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_2 = None
        _saved_tensors_hooks_disable_3 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_3 = None
        _grad_increment_nesting_3 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_3 = None

        diff_args_2: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_10 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_10 = None

        _set_tensor_requires_grad_5: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_2);  _set_tensor_requires_grad_5 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_11 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_11 = None

        silu: "f32[9][1]cpu" = torch.nn.functional.silu(diff_args_2)
        pow_3: "f32[9][1]cpu" = silu.pow(2);  silu = None
        output_6: "f32[][]cpu" = pow_3.sum();  pow_3 = None

        _autograd_grad_3 = torch._functorch.eager_transforms._autograd_grad((output_6,), [diff_args_2], create_graph = True);  diff_args_2 = None
        grad_input_4: "f32[9][1]cpu" = _autograd_grad_3[0];  _autograd_grad_3 = None

        grad_input_5: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_4, 1);  grad_input_4 = None
        output_7: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_6, 1);  output_6 = output_7 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_3 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_3 = None
        _saved_tensors_hooks_enable_3 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_3 = None
        _saved_tensors_hooks_disable_4 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_4 = None
        _grad_increment_nesting_4 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_4 = None

        diff_args_3: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_12 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_12 = None

        _set_tensor_requires_grad_6: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_3);  _set_tensor_requires_grad_6 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_13 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_13 = None

        elu: "f32[9][1]cpu" = torch.nn.functional.elu(diff_args_3)
        pow_4: "f32[9][1]cpu" = elu.pow(2);  elu = None
        output_8: "f32[][]cpu" = pow_4.sum();  pow_4 = None

        _autograd_grad_4 = torch._functorch.eager_transforms._autograd_grad((output_8,), [diff_args_3], create_graph = True);  diff_args_3 = None
        grad_input_6: "f32[9][1]cpu" = _autograd_grad_4[0];  _autograd_grad_4 = None

        grad_input_7: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_6, 1);  grad_input_6 = None
        output_9: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_8, 1);  output_8 = output_9 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_4 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_4 = None
        _saved_tensors_hooks_enable_4 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_4 = None
        _saved_tensors_hooks_disable_5 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_5 = None
        _grad_increment_nesting_5 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_5 = None

        diff_args_4: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_14 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_14 = None

        _set_tensor_requires_grad_7: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_4);  _set_tensor_requires_grad_7 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_15 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_15 = None

        softplus: "f32[9][1]cpu" = torch._C._nn.softplus(diff_args_4)
        pow_5: "f32[9][1]cpu" = softplus.pow(2);  softplus = None
        output_10: "f32[][]cpu" = pow_5.sum();  pow_5 = None

        _autograd_grad_5 = torch._functorch.eager_transforms._autograd_grad((output_10,), [diff_args_4], create_graph = True);  diff_args_4 = None
        grad_input_8: "f32[9][1]cpu" = _autograd_grad_5[0];  _autograd_grad_5 = None

        grad_input_9: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_8, 1);  grad_input_8 = None
        output_11: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_10, 1);  output_10 = output_11 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_5 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_5 = None
        _saved_tensors_hooks_enable_5 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_5 = None
        _saved_tensors_hooks_disable_6 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_6 = None
        _grad_increment_nesting_6 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_6 = None

        diff_args_5: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_16 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_16 = None

        _set_tensor_requires_grad_8: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_5);  _set_tensor_requires_grad_8 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_17 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_17 = None

        leaky_relu: "f32[9][1]cpu" = torch.nn.functional.leaky_relu(diff_args_5)
        pow_6: "f32[9][1]cpu" = leaky_relu.pow(2);  leaky_relu = None
        output_12: "f32[][]cpu" = pow_6.sum();  pow_6 = None

        _autograd_grad_6 = torch._functorch.eager_transforms._autograd_grad((output_12,), [diff_args_5], create_graph = True);  diff_args_5 = None
        grad_input_10: "f32[9][1]cpu" = _autograd_grad_6[0];  _autograd_grad_6 = None

        grad_input_11: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_10, 1);  grad_input_10 = None
        output_13: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_12, 1);  output_12 = output_13 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_6 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_6 = None
        _saved_tensors_hooks_enable_6 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_6 = None
        _saved_tensors_hooks_disable_7 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_7 = None
        _grad_increment_nesting_7 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_7 = None

        diff_args_6: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_18 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_18 = None

        _set_tensor_requires_grad_9: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_6);  _set_tensor_requires_grad_9 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_19 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_19 = None

        relu: "f32[9][1]cpu" = torch.nn.functional.relu(diff_args_6)
        pow_7: "f32[9][1]cpu" = relu.pow(2);  relu = None
        output_14: "f32[][]cpu" = pow_7.sum();  pow_7 = None

        _autograd_grad_7 = torch._functorch.eager_transforms._autograd_grad((output_14,), [diff_args_6], create_graph = True);  diff_args_6 = None
        grad_input_12: "f32[9][1]cpu" = _autograd_grad_7[0];  _autograd_grad_7 = None

        grad_input_13: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_12, 1);  grad_input_12 = None
        output_15: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_14, 1);  output_14 = output_15 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_7 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_7 = None
        _saved_tensors_hooks_enable_7 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_7 = None
        _saved_tensors_hooks_disable_8 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_8 = None
        _grad_increment_nesting_8 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_8 = None

        diff_args_7: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_20 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_20 = None

        _set_tensor_requires_grad_10: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_7);  _set_tensor_requires_grad_10 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_21 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_21 = None

        hardtanh: "f32[9][1]cpu" = torch.nn.functional.hardtanh(diff_args_7)
        pow_8: "f32[9][1]cpu" = hardtanh.pow(2);  hardtanh = None
        output_16: "f32[][]cpu" = pow_8.sum();  pow_8 = None

        _autograd_grad_8 = torch._functorch.eager_transforms._autograd_grad((output_16,), [diff_args_7], create_graph = True);  diff_args_7 = None
        grad_input_14: "f32[9][1]cpu" = _autograd_grad_8[0];  _autograd_grad_8 = None

        grad_input_15: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_14, 1);  grad_input_14 = None
        output_17: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_16, 1);  output_16 = output_17 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_8 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_8 = None
        _saved_tensors_hooks_enable_8 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_8 = None
        _saved_tensors_hooks_disable_9 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_9 = None
        _grad_increment_nesting_9 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_9 = None

        diff_args_8: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_22 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_22 = None

        _set_tensor_requires_grad_11: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_8);  _set_tensor_requires_grad_11 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_23 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_23 = None

        hardswish: "f32[9][1]cpu" = torch.nn.functional.hardswish(diff_args_8)
        pow_9: "f32[9][1]cpu" = hardswish.pow(2);  hardswish = None
        output_18: "f32[][]cpu" = pow_9.sum();  pow_9 = None

        _autograd_grad_9 = torch._functorch.eager_transforms._autograd_grad((output_18,), [diff_args_8], create_graph = True);  diff_args_8 = None
        grad_input_16: "f32[9][1]cpu" = _autograd_grad_9[0];  _autograd_grad_9 = None

        grad_input_17: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_16, 1);  grad_input_16 = None
        output_19: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_18, 1);  output_18 = output_19 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_9 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_9 = None
        _saved_tensors_hooks_enable_9 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_9 = None
        _saved_tensors_hooks_disable_10 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_10 = None
        _grad_increment_nesting_10 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_10 = None

        diff_args_9: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_24 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_24 = None

        _set_tensor_requires_grad_12: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_9);  _set_tensor_requires_grad_12 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_25 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_25 = None

        hardshrink: "f32[9][1]cpu" = torch.hardshrink(diff_args_9)
        pow_10: "f32[9][1]cpu" = hardshrink.pow(2);  hardshrink = None
        output_20: "f32[][]cpu" = pow_10.sum();  pow_10 = None

        _autograd_grad_10 = torch._functorch.eager_transforms._autograd_grad((output_20,), [diff_args_9], create_graph = True);  diff_args_9 = None
        grad_input_18: "f32[9][1]cpu" = _autograd_grad_10[0];  _autograd_grad_10 = None

        grad_input_19: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_18, 1);  grad_input_18 = None
        output_21: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_20, 1);  output_20 = output_21 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_10 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_10 = None
        _saved_tensors_hooks_enable_10 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_10 = None
        _saved_tensors_hooks_disable_11 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_11 = None
        _grad_increment_nesting_11 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_11 = None

        diff_args_10: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_26 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_26 = None

        _set_tensor_requires_grad_13: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_10);  _set_tensor_requires_grad_13 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_27 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_27 = None

        softshrink: "f32[9][1]cpu" = torch._C._nn.softshrink(diff_args_10)
        pow_11: "f32[9][1]cpu" = softshrink.pow(2);  softshrink = None
        output_22: "f32[][]cpu" = pow_11.sum();  pow_11 = None

        _autograd_grad_11 = torch._functorch.eager_transforms._autograd_grad((output_22,), [diff_args_10], create_graph = True);  diff_args_10 = None
        grad_input_20: "f32[9][1]cpu" = _autograd_grad_11[0];  _autograd_grad_11 = None

        grad_input_21: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_20, 1);  grad_input_20 = None
        output_23: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_22, 1);  output_22 = output_23 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_11 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_11 = None
        _saved_tensors_hooks_enable_11 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_11 = None
        _saved_tensors_hooks_disable_12 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_12 = None
        _grad_increment_nesting_12 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_12 = None

        diff_args_11: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_28 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_28 = None

        _set_tensor_requires_grad_14: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_11);  _set_tensor_requires_grad_14 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_29 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_29 = None

        log_sigmoid: "f32[9][1]cpu" = torch._C._nn.log_sigmoid(diff_args_11)
        pow_12: "f32[9][1]cpu" = log_sigmoid.pow(2);  log_sigmoid = None
        output_24: "f32[][]cpu" = pow_12.sum();  pow_12 = None

        _autograd_grad_12 = torch._functorch.eager_transforms._autograd_grad((output_24,), [diff_args_11], create_graph = True);  diff_args_11 = None
        grad_input_22: "f32[9][1]cpu" = _autograd_grad_12[0];  _autograd_grad_12 = None

        grad_input_23: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_22, 1);  grad_input_22 = None
        output_25: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_24, 1);  output_24 = output_25 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_12 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_12 = None
        _saved_tensors_hooks_enable_12 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_12 = None
        _saved_tensors_hooks_disable_13 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_13 = None
        _grad_increment_nesting_13 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_13 = None

        diff_args_12: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_30 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_30 = None

        _set_tensor_requires_grad_15: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_12);  _set_tensor_requires_grad_15 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_31 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_31 = None

        tanh_1: "f32[9][1]cpu" = torch.tanh(diff_args_12)
        pow_13: "f32[9][1]cpu" = tanh_1.pow(2);  tanh_1 = None
        output_26: "f32[][]cpu" = pow_13.sum();  pow_13 = None

        _autograd_grad_13 = torch._functorch.eager_transforms._autograd_grad((output_26,), [diff_args_12], create_graph = True);  diff_args_12 = None
        grad_input_24: "f32[9][1]cpu" = _autograd_grad_13[0];  _autograd_grad_13 = None

        grad_input_25: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_24, 1);  grad_input_24 = None
        output_27: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_26, 1);  output_26 = output_27 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_13 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_13 = None
        _saved_tensors_hooks_enable_13 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_13 = None
        _saved_tensors_hooks_disable_14 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_14 = None
        _grad_increment_nesting_14 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_14 = None

        diff_args_13: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_32 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_32 = None

        _set_tensor_requires_grad_16: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_13);  _set_tensor_requires_grad_16 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_33 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_33 = None

        sigmoid: "f32[9][1]cpu" = torch.sigmoid(diff_args_13)
        pow_14: "f32[9][1]cpu" = sigmoid.pow(2);  sigmoid = None
        output_28: "f32[][]cpu" = pow_14.sum();  pow_14 = None

        _autograd_grad_14 = torch._functorch.eager_transforms._autograd_grad((output_28,), [diff_args_13], create_graph = True);  diff_args_13 = None
        grad_input_26: "f32[9][1]cpu" = _autograd_grad_14[0];  _autograd_grad_14 = None

        grad_input_27: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_26, 1);  grad_input_26 = None
        output_29: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_28, 1);  output_28 = output_29 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_14 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_14 = None
        _saved_tensors_hooks_enable_14 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_14 = None

        seconds: "f32[14, 9][9, 1]cpu" = torch.stack([grad_input_1, grad_input_3, grad_input_5, grad_input_7, grad_input_9, grad_input_11, grad_input_13, grad_input_15, grad_input_17, grad_input_19, grad_input_21, grad_input_23, grad_input_25, grad_input_27]);  grad_input_1 = grad_input_3 = grad_input_5 = grad_input_7 = grad_input_9 = grad_input_11 = grad_input_13 = grad_input_15 = grad_input_17 = grad_input_19 = grad_input_21 = grad_input_23 = grad_input_25 = grad_input_27 = None

        # No stacktrace found for following nodes
        _saved_tensors_hooks_disable_15 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_15 = None
        _grad_increment_nesting_15 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_15 = None

        diff_args_14: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_34 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_34 = None

        _set_tensor_requires_grad_17: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_14);  _set_tensor_requires_grad_17 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_35 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_35 = None

        mul: "f32[9][1]cpu" = diff_args_14 * diff_args_14
        sin: "f32[9][1]cpu" = l_v_.sin()
        output_30: "f32[][]cpu" = torch.nn.functional.mse_loss(mul, sin);  mul = sin = None

        _autograd_grad_15 = torch._functorch.eager_transforms._autograd_grad((output_30,), [diff_args_14], create_graph = True);  diff_args_14 = None
        grad_input_28: "f32[9][1]cpu" = _autograd_grad_15[0];  _autograd_grad_15 = None

        grad_input_29: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_28, 1);  grad_input_28 = None
        output_31: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_30, 1);  output_30 = output_31 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_15 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_15 = None
        _saved_tensors_hooks_enable_15 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_15 = None
        _saved_tensors_hooks_disable_16 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_16 = None
        _grad_increment_nesting_16 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_16 = None

        diff_args_15: "f32[9][1]cpu" = torch._C._functorch._wrap_for_grad(l_v_, 1);  l_v_ = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_36 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_36 = None

        _set_tensor_requires_grad_18: "f32[9][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_15);  _set_tensor_requires_grad_18 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_37 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_37 = None

        getitem_18: "f32[1, 9][9, 1]cpu" = diff_args_15[None]
        tensor: "i64[1][1]cpu" = torch.tensor([3])
        output_32: "f32[][]cpu" = torch.nn.functional.cross_entropy(getitem_18, tensor, label_smoothing = 0.1);  getitem_18 = tensor = None

        _autograd_grad_16 = torch._functorch.eager_transforms._autograd_grad((output_32,), [diff_args_15], create_graph = True);  diff_args_15 = None
        grad_input_30: "f32[9][1]cpu" = _autograd_grad_16[0];  _autograd_grad_16 = None

        grad_input_31: "f32[9][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_30, 1);  grad_input_30 = None
        output_33: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_32, 1);  output_32 = output_33 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_16 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_16 = None
        _saved_tensors_hooks_enable_16 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_16 = None

        flatten: "f32[2, 108][108, 1]cpu" = gx.flatten(1);  gx = None
        norm: "f32[2][1]cpu" = flatten.norm(dim = 1);  flatten = None
        sub: "f32[2][1]cpu" = norm - 1;  norm = None
        pow_15: "f32[2][1]cpu" = sub.pow(2);  sub = None
        mean: "f32[][]cpu" = pow_15.mean();  pow_15 = None
        abs_1: "f32[4, 3, 3, 3][27, 9, 3, 1]cpu" = gw.abs();  gw = None
        sum_16: "f32[][]cpu" = abs_1.sum();  abs_1 = None
        mul_1: "f32[9][1]cpu" = grad_input_29 * grad_input_31;  grad_input_29 = grad_input_31 = None
        return (mean, sum_16, gb, seconds, mul_1)
