class GraphModule(torch.nn.Module):
    def forward(self, L_w_: "f32[5, 4][4, 1]cpu", L_x_: "f32[3, 4][4, 1]cpu", L_b_: "f32[5][1]cpu", L_y_: "f32[3, 5][5, 1]cpu"):
        l_w_ = L_w_
        l_x_ = L_x_
        l_b_ = L_b_
        l_y_ = L_y_

        lazy_load_decompositions = torch._functorch.predispatch.lazy_load_decompositions();  lazy_load_decompositions = None

        _vmap_increment_nesting = torch._functorch.predispatch._vmap_increment_nesting(3, 'error');  _vmap_increment_nesting = None

        _add_batch_dim: "f32[4][1]cpu" = torch._functorch.predispatch._add_batch_dim(l_x_, 0, 1)
        _add_batch_dim_1: "f32[5][1]cpu" = torch._functorch.predispatch._add_batch_dim(l_y_, 0, 1);  l_y_ = None

        # No stacktrace found for following nodes
        _saved_tensors_hooks_disable = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable = None
        _grad_increment_nesting = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting = None

        child: "f32[5, 4][4, 1]cpu" = torch._C._functorch._wrap_for_grad(l_w_, 2)
        child_1: "f32[5][1]cpu" = torch._C._functorch._wrap_for_grad(l_b_, 2);  l_b_ = None
        _wrap_for_grad_2: "f32[4][1]cpu" = torch._C._functorch._wrap_for_grad(_add_batch_dim, 2);  _add_batch_dim = None
        _wrap_for_grad_3: "f32[5][1]cpu" = torch._C._functorch._wrap_for_grad(_add_batch_dim_1, 2);  _add_batch_dim_1 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed = None

        _set_tensor_requires_grad: "f32[5, 4][4, 1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(child);  _set_tensor_requires_grad = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_1 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_1 = None
        set_inplace_requires_grad_allowed_2 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_2 = None

        _set_tensor_requires_grad_1: "f32[5][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(child_1);  _set_tensor_requires_grad_1 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_3 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_3 = None

        silu: "f32[4][1]cpu" = torch.nn.functional.silu(_wrap_for_grad_2);  _wrap_for_grad_2 = None
        out: "f32[5][1]cpu" = torch._C._nn.linear(silu, child, child_1);  silu = None

        softmax: "f32[5][1]cpu" = out.softmax(0);  out = None
        output: "f32[][]cpu" = torch.nn.functional.mse_loss(softmax, _wrap_for_grad_3);  softmax = _wrap_for_grad_3 = None

        _autograd_grad = torch._functorch.eager_transforms._autograd_grad((output,), [child, child_1], create_graph = True);  child = child_1 = None
        getitem: "f32[5, 4][4, 1]cpu" = _autograd_grad[0]
        getitem_1: "f32[5][1]cpu" = _autograd_grad[1];  _autograd_grad = None

        child_2: "f32[5, 4][4, 1]cpu" = torch._functorch.predispatch._unwrap_for_grad(getitem, 2);  getitem = None
        child_3: "f32[5][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(getitem_1, 2);  getitem_1 = None
        output_1: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output, 2);  output = output_1 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting = None
        _saved_tensors_hooks_enable = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable = None

        _remove_batch_dim: "f32[3, 5, 4][20, 4, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(child_2, 1, 3, 0);  child_2 = None
        _remove_batch_dim_1: "f32[3, 5][5, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(child_3, 1, 3, 0);  child_3 = None

        # No stacktrace found for following nodes
        _vmap_decrement_nesting = torch._functorch.predispatch._vmap_decrement_nesting();  _vmap_decrement_nesting = None
        _saved_tensors_hooks_disable_1 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_1 = None
        _grad_increment_nesting_1 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_1 = None

        diff_args: "f32[3, 4][4, 1]cpu" = torch._C._functorch._wrap_for_grad(l_x_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_4 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_4 = None

        _set_tensor_requires_grad_2: "f32[3, 4][4, 1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args);  _set_tensor_requires_grad_2 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_5 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_5 = None

        tanh: "f32[3, 4][4, 1]cpu" = diff_args.tanh()
        t: "f32[4, 5][1, 4]cpu" = l_w_.t();  l_w_ = None
        matmul: "f32[3, 5][5, 1]cpu" = tanh @ t;  tanh = t = None
        logsumexp: "f32[3][1]cpu" = matmul.logsumexp(1);  matmul = None
        sum_1: "f32[][]cpu" = logsumexp.sum();  logsumexp = None
        sum_2: "f32[][]cpu" = l_x_.sum()
        output_2: "f32[][]cpu" = sum_1 + sum_2;  sum_1 = sum_2 = None

        _autograd_grad_1 = torch._functorch.eager_transforms._autograd_grad((output_2,), [diff_args], create_graph = True);  diff_args = None
        grad_input: "f32[3, 4][4, 1]cpu" = _autograd_grad_1[0];  _autograd_grad_1 = None

        grad_input_1: "f32[3, 4][4, 1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input, 1);  grad_input = None
        output_3: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_2, 1);  output_2 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_1 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_1 = None
        _saved_tensors_hooks_enable_1 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_1 = None
        _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None
        _saved_tensors_hooks_disable_2 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_2 = None
        _grad_increment_nesting_2 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_2 = None
        _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None

        diff_args_1: "f32[3, 4][4, 1]cpu" = torch._C._functorch._wrap_for_grad(l_x_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_6 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_6 = None

        _set_tensor_requires_grad_3: "f32[3, 4][4, 1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_1);  _set_tensor_requires_grad_3 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_7 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_7 = None

        mul: "f32[3, 4][4, 1]cpu" = diff_args_1 * diff_args_1
        mul_1: "f32[3, 4][4, 1]cpu" = mul * l_x_;  mul = None
        output_4: "f32[][]cpu" = mul_1.sum();  mul_1 = None

        _autograd_grad_2 = torch._functorch.eager_transforms._autograd_grad((output_4,), [diff_args_1], create_graph = True);  diff_args_1 = None
        grad_input_2: "f32[3, 4][4, 1]cpu" = _autograd_grad_2[0];  _autograd_grad_2 = None

        grad_input_3: "f32[3, 4][4, 1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_2, 1);  grad_input_2 = None
        output_5: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_4, 1);  output_4 = output_5 = None

        # No stacktrace found for following nodes
        _set_grad_enabled_2 = torch._C._set_grad_enabled(False);  _set_grad_enabled_2 = None
        _grad_decrement_nesting_2 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_2 = None
        _saved_tensors_hooks_enable_2 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_2 = None
        _set_grad_enabled_3 = torch._C._set_grad_enabled(True);  _set_grad_enabled_3 = None
        _saved_tensors_hooks_disable_3 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_3 = None
        _grad_increment_nesting_3 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_3 = None

        diff_args_2: "f32[3, 4][4, 1]cpu" = torch._C._functorch._wrap_for_grad(l_x_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_8 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_8 = None

        _set_tensor_requires_grad_4: "f32[3, 4][4, 1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args_2);  _set_tensor_requires_grad_4 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_9 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_9 = None

        made: "f32[3, 4][4, 1]cpu" = diff_args_2 * 2

        before: "f32[3, 4][4, 1]cpu" = made.exp()

        sin_: "f32[3, 4][4, 1]cpu" = made.sin_()
        mul_: "f32[3, 4][4, 1]cpu" = sin_.mul_(diff_args_2);  sin_ = mul_ = None

        made += before;  made_1: "f32[3, 4][4, 1]cpu" = made;  made = before = None

        output_6: "f32[][]cpu" = made_1.sum();  made_1 = None

        _autograd_grad_3 = torch._functorch.eager_transforms._autograd_grad((output_6,), [diff_args_2], create_graph = True);  diff_args_2 = None
        grad_input_4: "f32[3, 4][4, 1]cpu" = _autograd_grad_3[0];  _autograd_grad_3 = None

        grad_input_5: "f32[3, 4][4, 1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input_4, 1);  grad_input_4 = None
        output_7: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output_6, 1);  output_6 = output_7 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting_3 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_3 = None
        _saved_tensors_hooks_enable_3 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_3 = None

        unseen: "f32[3, 4][4, 1]cpu" = grad_input_3 + grad_input_5;  grad_input_3 = grad_input_5 = None

        pow_1: "f32[3, 4][4, 1]cpu" = grad_input_1.pow(2)
        sum_5: "f32[][]cpu" = pow_1.sum();  pow_1 = None
        add_2: "f32[][]cpu" = sum_5 + output_3;  sum_5 = output_3 = None
        mul_3: "f32[3, 4][4, 1]cpu" = 0.1 * grad_input_1;  grad_input_1 = None
        sub: "f32[3, 4][4, 1]cpu" = l_x_ - mul_3;  l_x_ = mul_3 = None
        mul_4: "f32[3, 4][4, 1]cpu" = sub * unseen;  sub = unseen = None
        return (_remove_batch_dim, _remove_batch_dim_1, add_2, mul_4)
