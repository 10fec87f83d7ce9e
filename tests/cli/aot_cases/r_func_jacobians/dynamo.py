class GraphModule(torch.nn.Module):
    def forward(self, L_v_: "f32[4][1]cpu", L_x_: "f32[4][1]cpu", L_w_: "f32[3, 4][4, 1]cpu"):
        l_v_ = L_v_
        l_x_ = L_x_
        l_w_ = L_w_

        # No stacktrace found for following nodes
        _jvp_increment_nesting = torch._functorch.predispatch._jvp_increment_nesting();  _jvp_increment_nesting = None
        _set_fwd_grad_enabled = torch._C._set_fwd_grad_enabled(True);  _set_fwd_grad_enabled = None
        _enter_dual_level = torch._functorch.predispatch._enter_dual_level();  _enter_dual_level = None

        _maybe_load_decompositions = torch.autograd.forward_ad._maybe_load_decompositions();  _maybe_load_decompositions = None

        _make_dual: "f32[4][1]cpu" = torch._functorch.predispatch._make_dual(l_x_, l_v_, level = 0)

        factor: "f32[4][1]cpu" = l_v_ * 2

        before: "f32[4][1]cpu" = _make_dual * factor

        add_: "f32[4][1]cpu" = factor.add_(1);  add_ = None

        mul_2: "f32[4][1]cpu" = factor * _make_dual;  factor = _make_dual = None
        result_duals: "f32[4][1]cpu" = before + mul_2;  before = mul_2 = None

        _unpack_dual = torch._functorch.predispatch._unpack_dual(result_duals, level = 0);  result_duals = None
        primal: "f32[4][1]cpu" = _unpack_dual[0]
        dual: "f32[4][1]cpu" = _unpack_dual[1];  _unpack_dual = None

        primals_out_unflatten: "f32[4][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(primal, 1);  primal = None
        tangents_out_unflatten: "f32[4][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(dual, 1);  dual = None

        # No stacktrace found for following nodes
        _exit_dual_level = torch._functorch.predispatch._exit_dual_level(level = 0);  _exit_dual_level = None
        _set_fwd_grad_enabled_1 = torch._C._set_fwd_grad_enabled(True);  _set_fwd_grad_enabled_1 = None
        _jvp_decrement_nesting = torch._functorch.predispatch._jvp_decrement_nesting();  _jvp_decrement_nesting = None
        _jvp_increment_nesting_1 = torch._functorch.predispatch._jvp_increment_nesting();  _jvp_increment_nesting_1 = None
        _set_fwd_grad_enabled_2 = torch._C._set_fwd_grad_enabled(True);  _set_fwd_grad_enabled_2 = None
        _enter_dual_level_1 = torch._functorch.predispatch._enter_dual_level();  _enter_dual_level_1 = None

        _maybe_load_decompositions_1 = torch.autograd.forward_ad._maybe_load_decompositions();  _maybe_load_decompositions_1 = None

        _make_dual_1: "f32[4][1]cpu" = torch._functorch.predispatch._make_dual(l_x_, l_v_, level = 0);  l_v_ = None

        # No stacktrace found for following nodes
        _saved_tensors_hooks_disable = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable = None
        _grad_increment_nesting = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting = None

        diff_args: "f32[4][1]cpu" = torch._C._functorch._wrap_for_grad(_make_dual_1, 2);  _make_dual_1 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed = None

        _set_tensor_requires_grad: "f32[4][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_args);  _set_tensor_requires_grad = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_1 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_1 = None
        _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

        abs_1: "f32[4][1]cpu" = diff_args.abs()
        scale: "f32[4][1]cpu" = abs_1 + 1;  abs_1 = None

        # No stacktrace found for following nodes
        _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None

        matmul: "f32[3][1]cpu" = l_w_ @ diff_args
        gelu: "f32[3][1]cpu" = torch._C._nn.gelu(matmul);  matmul = None
        sum_1: "f32[][]cpu" = diff_args.sum()
        mul_3: "f32[3][1]cpu" = gelu * sum_1;  gelu = sum_1 = None

        sigmoid: "f32[3][1]cpu" = mul_3.sigmoid();  mul_3 = None
        prod: "f32[][]cpu" = sigmoid.prod();  sigmoid = None
        truediv: "f32[4][1]cpu" = prod / scale;  prod = scale = None
        output: "f32[][]cpu" = truediv.sum();  truediv = None

        _autograd_grad = torch._functorch.eager_transforms._autograd_grad((output,), [diff_args], create_graph = True);  diff_args = None
        grad_input: "f32[4][1]cpu" = _autograd_grad[0];  _autograd_grad = None

        grad_input_1: "f32[4][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(grad_input, 2);  grad_input = None
        output_1: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(output, 2);  output = output_1 = None

        # No stacktrace found for following nodes
        _grad_decrement_nesting = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting = None
        _saved_tensors_hooks_enable = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable = None

        _unpack_dual_1 = torch._functorch.predispatch._unpack_dual(grad_input_1, level = 0);  grad_input_1 = None
        primal_1: "f32[4][1]cpu" = _unpack_dual_1[0]
        dual_1: "f32[4][1]cpu" = _unpack_dual_1[1];  _unpack_dual_1 = None

        primals_out_unflatten_1: "f32[4][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(primal_1, 1);  primal_1 = None
        tangents_out_unflatten_1: "f32[4][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(dual_1, 1);  dual_1 = None

        # No stacktrace found for following nodes
        _exit_dual_level_1 = torch._functorch.predispatch._exit_dual_level(level = 0);  _exit_dual_level_1 = None
        _set_fwd_grad_enabled_3 = torch._C._set_fwd_grad_enabled(True);  _set_fwd_grad_enabled_3 = None
        _jvp_decrement_nesting_1 = torch._functorch.predispatch._jvp_decrement_nesting();  _jvp_decrement_nesting_1 = None
        _saved_tensors_hooks_disable_1 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_1 = None
        _grad_increment_nesting_1 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_1 = None

        diff_primals: "f32[4][1]cpu" = torch._C._functorch._wrap_for_grad(l_x_, 1)

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_2 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_2 = None

        _set_tensor_requires_grad_1: "f32[4][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_primals);  _set_tensor_requires_grad_1 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_3 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_3 = None

        matmul_1: "f32[3][1]cpu" = l_w_ @ diff_primals
        gelu_1: "f32[3][1]cpu" = torch._C._nn.gelu(matmul_1);  matmul_1 = None
        sum_3: "f32[][]cpu" = diff_primals.sum()
        primals_out: "f32[3][1]cpu" = gelu_1 * sum_3;  gelu_1 = sum_3 = None

        results: "f32[3][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(primals_out, 1)

        # No stacktrace found for following nodes
        _grad_decrement_nesting_1 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_1 = None
        _saved_tensors_hooks_enable_1 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_1 = None

        chunk: "f32[3, 3][3, 1]cpu" = results.new_zeros(3, 3);  results = None

        diagonal: "f32[3][4]cpu" = chunk.diagonal(0)
        fill_: "f32[3][4]cpu" = diagonal.fill_(1);  diagonal = fill_ = None

        basis: "f32[3, 3][3, 1]cpu" = chunk.view(3, 3);  chunk = None

        lazy_load_decompositions = torch._functorch.predispatch.lazy_load_decompositions();  lazy_load_decompositions = None

        _vmap_increment_nesting = torch._functorch.predispatch._vmap_increment_nesting(3, 'error');  _vmap_increment_nesting = None

        _add_batch_dim: "f32[3][1]cpu" = torch._functorch.predispatch._add_batch_dim(basis, 0, 1);  basis = None

        _autograd_grad_1 = torch._functorch.eager_transforms._autograd_grad([primals_out], [diff_primals], [_add_batch_dim], retain_graph = True, create_graph = True);  primals_out = diff_primals = _add_batch_dim = None
        batched_outputs: "f32[4][3]cpu" = _autograd_grad_1[0];  _autograd_grad_1 = None

        chunked_result: "f32[3, 4][1, 3]cpu" = torch._functorch.predispatch._remove_batch_dim(batched_outputs, 1, 3, 0);  batched_outputs = None

        # No stacktrace found for following nodes
        _vmap_decrement_nesting = torch._functorch.predispatch._vmap_decrement_nesting();  _vmap_decrement_nesting = None

        split = torch.functional.split(chunked_result, [3], dim = 0);  chunked_result = None
        split_1: "f32[3, 4][1, 3]cpu" = split[0];  split = None

        output_input: "f32[3, 4][1, 3]cpu" = split_1.view((3, 4));  split_1 = None

        contiguous: "f32[3, 4][4, 1]cpu" = output_input.contiguous();  output_input = None

        chunk_1: "f32[4, 4][4, 1]cpu" = l_x_.new_zeros(4, 4)

        diagonal_1: "f32[4][5]cpu" = chunk_1.diagonal(0)
        fill__1: "f32[4][5]cpu" = diagonal_1.fill_(1);  diagonal_1 = fill__1 = None

        child: "f32[4, 4][4, 1]cpu" = chunk_1.view(4, 4);  chunk_1 = None

        lazy_load_decompositions_1 = torch._functorch.predispatch.lazy_load_decompositions();  lazy_load_decompositions_1 = None

        _vmap_increment_nesting_1 = torch._functorch.predispatch._vmap_increment_nesting(4, 'error');  _vmap_increment_nesting_1 = None

        child_1: "f32[4][1]cpu" = torch._functorch.predispatch._add_batch_dim(child, 0, 1);  child = None

        # No stacktrace found for following nodes
        _jvp_increment_nesting_2 = torch._functorch.predispatch._jvp_increment_nesting();  _jvp_increment_nesting_2 = None
        _set_fwd_grad_enabled_4 = torch._C._set_fwd_grad_enabled(True);  _set_fwd_grad_enabled_4 = None
        _enter_dual_level_2 = torch._functorch.predispatch._enter_dual_level();  _enter_dual_level_2 = None

        _maybe_load_decompositions_2 = torch.autograd.forward_ad._maybe_load_decompositions();  _maybe_load_decompositions_2 = None

        _make_dual_2: "f32[4][1]cpu" = torch._functorch.predispatch._make_dual(l_x_, child_1, level = 0);  child_1 = None

        _wrap_for_grad_2: "f32[4][1]cpu" = torch._C._functorch._wrap_for_grad(l_x_, 2);  _wrap_for_grad_2 = None

        matmul_2: "f32[3][1]cpu" = l_w_ @ _make_dual_2
        gelu_2: "f32[3][1]cpu" = torch._C._nn.gelu(matmul_2);  matmul_2 = None
        sum_4: "f32[][]cpu" = _make_dual_2.sum();  _make_dual_2 = None
        result_duals_1: "f32[3][1]cpu" = gelu_2 * sum_4;  gelu_2 = sum_4 = None

        _unpack_dual_2 = torch._functorch.predispatch._unpack_dual(result_duals_1, level = 0);  result_duals_1 = None
        primal_2: "f32[3][1]cpu" = _unpack_dual_2[0]
        dual_2: "f32[3][1]cpu" = _unpack_dual_2[1];  _unpack_dual_2 = None

        primals_out_unflatten_2: "f32[3][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(primal_2, 2);  primal_2 = primals_out_unflatten_2 = None
        tangents_out_unflatten_2: "f32[3][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(dual_2, 2);  dual_2 = None

        # No stacktrace found for following nodes
        _exit_dual_level_2 = torch._functorch.predispatch._exit_dual_level(level = 0);  _exit_dual_level_2 = None
        _set_fwd_grad_enabled_5 = torch._C._set_fwd_grad_enabled(True);  _set_fwd_grad_enabled_5 = None
        _jvp_decrement_nesting_2 = torch._functorch.predispatch._jvp_decrement_nesting();  _jvp_decrement_nesting_2 = None

        results_1: "f32[4, 3][3, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(tangents_out_unflatten_2, 1, 4, 0);  tangents_out_unflatten_2 = None

        # No stacktrace found for following nodes
        _vmap_decrement_nesting_1 = torch._functorch.predispatch._vmap_decrement_nesting();  _vmap_decrement_nesting_1 = None

        movedim: "f32[3, 4][1, 3]cpu" = results_1.movedim(0, -1);  results_1 = None

        split_2 = torch.functional.split(movedim, [4], dim = -1);  movedim = None
        jac_out_in: "f32[3, 4][1, 3]cpu" = split_2[0];  split_2 = None

        unflatten: "f32[3, 4][1, 3]cpu" = jac_out_in.unflatten(-1, (4,));  jac_out_in = None

        chunk_2: "f32[4, 4][4, 1]cpu" = l_x_.new_zeros(4, 4)

        diagonal_2: "f32[4][5]cpu" = chunk_2.diagonal(0)
        fill__2: "f32[4][5]cpu" = diagonal_2.fill_(1);  diagonal_2 = fill__2 = None

        child_2: "f32[4, 4][4, 1]cpu" = chunk_2.view(4, 4);  chunk_2 = None

        lazy_load_decompositions_2 = torch._functorch.predispatch.lazy_load_decompositions();  lazy_load_decompositions_2 = None

        _vmap_increment_nesting_2 = torch._functorch.predispatch._vmap_increment_nesting(4, 'error');  _vmap_increment_nesting_2 = None

        child_3: "f32[4][1]cpu" = torch._functorch.predispatch._add_batch_dim(child_2, 0, 1);  child_2 = None

        # No stacktrace found for following nodes
        _jvp_increment_nesting_3 = torch._functorch.predispatch._jvp_increment_nesting();  _jvp_increment_nesting_3 = None
        _set_fwd_grad_enabled_6 = torch._C._set_fwd_grad_enabled(True);  _set_fwd_grad_enabled_6 = None
        _enter_dual_level_3 = torch._functorch.predispatch._enter_dual_level();  _enter_dual_level_3 = None

        _maybe_load_decompositions_3 = torch.autograd.forward_ad._maybe_load_decompositions();  _maybe_load_decompositions_3 = None

        child_4: "f32[4][1]cpu" = torch._functorch.predispatch._make_dual(l_x_, child_3, level = 0);  child_3 = None

        _wrap_for_grad_3: "f32[4][1]cpu" = torch._C._functorch._wrap_for_grad(l_x_, 2);  l_x_ = _wrap_for_grad_3 = None

        # No stacktrace found for following nodes
        _saved_tensors_hooks_disable_2 = torch._C._autograd._saved_tensors_hooks_disable("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.");  _saved_tensors_hooks_disable_2 = None
        _grad_increment_nesting_2 = torch._C._functorch._grad_increment_nesting();  _grad_increment_nesting_2 = None

        diff_primals_1: "f32[4][1]cpu" = torch._C._functorch._wrap_for_grad(child_4, 3);  child_4 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_4 = torch._C._functorch.set_inplace_requires_grad_allowed(True);  set_inplace_requires_grad_allowed_4 = None

        _set_tensor_requires_grad_2: "f32[4][1]cpu" = torch._functorch.eager_transforms._set_tensor_requires_grad(diff_primals_1);  _set_tensor_requires_grad_2 = None

        # No stacktrace found for following nodes
        set_inplace_requires_grad_allowed_5 = torch._C._functorch.set_inplace_requires_grad_allowed(False);  set_inplace_requires_grad_allowed_5 = None
        _set_grad_enabled_2 = torch._C._set_grad_enabled(False);  _set_grad_enabled_2 = None

        abs_2: "f32[4][1]cpu" = diff_primals_1.abs()
        scale_1: "f32[4][1]cpu" = abs_2 + 1;  abs_2 = None

        # No stacktrace found for following nodes
        _set_grad_enabled_3 = torch._C._set_grad_enabled(True);  _set_grad_enabled_3 = None

        matmul_3: "f32[3][1]cpu" = l_w_ @ diff_primals_1;  l_w_ = None
        gelu_3: "f32[3][1]cpu" = torch._C._nn.gelu(matmul_3);  matmul_3 = None
        sum_5: "f32[][]cpu" = diff_primals_1.sum()
        mul_6: "f32[3][1]cpu" = gelu_3 * sum_5;  gelu_3 = sum_5 = None

        sigmoid_1: "f32[3][1]cpu" = mul_6.sigmoid();  mul_6 = None
        prod_1: "f32[][]cpu" = sigmoid_1.prod();  sigmoid_1 = None
        truediv_1: "f32[4][1]cpu" = prod_1 / scale_1;  prod_1 = scale_1 = None
        primals_out_1: "f32[][]cpu" = truediv_1.sum();  truediv_1 = None

        results_2: "f32[][]cpu" = torch._functorch.predispatch._unwrap_for_grad(primals_out_1, 3)

        # No stacktrace found for following nodes
        _grad_decrement_nesting_2 = torch._C._functorch._grad_decrement_nesting();  _grad_decrement_nesting_2 = None
        _saved_tensors_hooks_enable_2 = torch._C._autograd._saved_tensors_hooks_enable();  _saved_tensors_hooks_enable_2 = None

        chunk_3: "f32[1, 1][1, 1]cpu" = results_2.new_zeros(1, 1);  results_2 = None

        diagonal_3: "f32[1][2]cpu" = chunk_3.diagonal(0)
        fill__3: "f32[1][2]cpu" = diagonal_3.fill_(1);  diagonal_3 = fill__3 = None

        basis_1: "f32[1][1]cpu" = chunk_3.view(1);  chunk_3 = None

        lazy_load_decompositions_3 = torch._functorch.predispatch.lazy_load_decompositions();  lazy_load_decompositions_3 = None

        _vmap_increment_nesting_3 = torch._functorch.predispatch._vmap_increment_nesting(1, 'error');  _vmap_increment_nesting_3 = None

        _add_batch_dim_3: "f32[][]cpu" = torch._functorch.predispatch._add_batch_dim(basis_1, 0, 3);  basis_1 = None

        _autograd_grad_2 = torch._functorch.eager_transforms._autograd_grad([primals_out_1], [diff_primals_1], [_add_batch_dim_3], retain_graph = True, create_graph = True);  primals_out_1 = diff_primals_1 = _add_batch_dim_3 = None
        batched_outputs_1: "f32[4][1]cpu" = _autograd_grad_2[0];  _autograd_grad_2 = None

        chunked_result_1: "f32[1, 4][1, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(batched_outputs_1, 3, 1, 0);  batched_outputs_1 = None

        # No stacktrace found for following nodes
        _vmap_decrement_nesting_2 = torch._functorch.predispatch._vmap_decrement_nesting();  _vmap_decrement_nesting_2 = None

        split_3 = torch.functional.split(chunked_result_1, [1], dim = 0);  chunked_result_1 = None
        split_4: "f32[1, 4][1, 1]cpu" = split_3[0];  split_3 = None

        output_input_1: "f32[4][1]cpu" = split_4.view((4,));  split_4 = None

        _unpack_dual_3 = torch._functorch.predispatch._unpack_dual(output_input_1, level = 0);  output_input_1 = None
        primal_3: "f32[4][1]cpu" = _unpack_dual_3[0]
        dual_3: "f32[4][1]cpu" = _unpack_dual_3[1];  _unpack_dual_3 = None

        primals_out_unflatten_3: "f32[4][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(primal_3, 2);  primal_3 = primals_out_unflatten_3 = None
        tangents_out_unflatten_3: "f32[4][1]cpu" = torch._functorch.predispatch._unwrap_for_grad(dual_3, 2);  dual_3 = None

        # No stacktrace found for following nodes
        _exit_dual_level_3 = torch._functorch.predispatch._exit_dual_level(level = 0);  _exit_dual_level_3 = None
        _set_fwd_grad_enabled_7 = torch._C._set_fwd_grad_enabled(True);  _set_fwd_grad_enabled_7 = None
        _jvp_decrement_nesting_3 = torch._functorch.predispatch._jvp_decrement_nesting();  _jvp_decrement_nesting_3 = None

        results_3: "f32[4, 4][4, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(tangents_out_unflatten_3, 1, 4, 0);  tangents_out_unflatten_3 = None

        # No stacktrace found for following nodes
        _vmap_decrement_nesting_3 = torch._functorch.predispatch._vmap_decrement_nesting();  _vmap_decrement_nesting_3 = None

        movedim_1: "f32[4, 4][1, 4]cpu" = results_3.movedim(0, -1);  results_3 = None

        split_5 = torch.functional.split(movedim_1, [4], dim = -1);  movedim_1 = None
        jac_out_in_1: "f32[4, 4][1, 4]cpu" = split_5[0];  split_5 = None

        unflatten_1: "f32[4, 4][1, 4]cpu" = jac_out_in_1.unflatten(-1, (4,));  jac_out_in_1 = None
        return (contiguous, unflatten, unflatten_1, primals_out_unflatten_1, tangents_out_unflatten_1, primals_out_unflatten, tangents_out_unflatten)
