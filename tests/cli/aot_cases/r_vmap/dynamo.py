class GraphModule(torch.nn.Module):
    def forward(self, L_w_: "f32[5, 4][4, 1]cpu", L_x_: "f32[3, 4][4, 1]cpu", L_z_: "f32[3][1]cpu", L_y_: "f32[3, 4, 2][8, 2, 1]cpu"):
        l_w_ = L_w_
        l_x_ = L_x_
        l_z_ = L_z_
        l_y_ = L_y_

        lazy_load_decompositions = torch._functorch.predispatch.lazy_load_decompositions();  lazy_load_decompositions = None

        _vmap_increment_nesting = torch._functorch.predispatch._vmap_increment_nesting(3, 'error');  _vmap_increment_nesting = None

        _add_batch_dim: "f32[4][1]cpu" = torch._functorch.predispatch._add_batch_dim(l_x_, 0, 1)

        lazy_load_decompositions_1 = torch._functorch.predispatch.lazy_load_decompositions();  lazy_load_decompositions_1 = None

        _vmap_increment_nesting_1 = torch._functorch.predispatch._vmap_increment_nesting(5, 'error');  _vmap_increment_nesting_1 = None

        _add_batch_dim_1: "f32[4][1]cpu" = torch._functorch.predispatch._add_batch_dim(l_w_, 0, 2)

        dot: "f32[][]cpu" = torch.dot(_add_batch_dim, _add_batch_dim_1);  _add_batch_dim = _add_batch_dim_1 = None
        batched_outputs: "f32[3][1]cpu" = dot * l_z_;  dot = None

        batched_outputs_1: "f32[5, 3][3, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(batched_outputs, 2, 5, 0);  batched_outputs = None

        # No stacktrace found for following nodes
        _vmap_decrement_nesting = torch._functorch.predispatch._vmap_decrement_nesting();  _vmap_decrement_nesting = None

        outer: "f32[5, 3, 3][3, 15, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(batched_outputs_1, 1, 3, 1);  batched_outputs_1 = None

        # No stacktrace found for following nodes
        _vmap_decrement_nesting_1 = torch._functorch.predispatch._vmap_decrement_nesting();  _vmap_decrement_nesting_1 = None

        lazy_load_decompositions_2 = torch._functorch.predispatch.lazy_load_decompositions();  lazy_load_decompositions_2 = None

        _vmap_increment_nesting_2 = torch._functorch.predispatch._vmap_increment_nesting(3, 'error');  _vmap_increment_nesting_2 = None

        _add_batch_dim_2: "f32[4][1]cpu" = torch._functorch.predispatch._add_batch_dim(l_x_, 0, 1);  l_x_ = None
        _add_batch_dim_3: "f32[4, 2][2, 1]cpu" = torch._functorch.predispatch._add_batch_dim(l_y_, 0, 1);  l_y_ = None
        _add_batch_dim_4: "f32[][]cpu" = torch._functorch.predispatch._add_batch_dim(l_z_, 0, 1);  l_z_ = None

        linear: "f32[5][1]cpu" = torch._C._nn.linear(_add_batch_dim_2, l_w_);  l_w_ = None
        scores: "f32[5][1]cpu" = linear.softmax(-1);  linear = None

        unsqueeze: "f32[4, 1][1, 1]cpu" = _add_batch_dim_2.unsqueeze(-1);  _add_batch_dim_2 = None
        mul_1: "f32[4, 2][2, 1]cpu" = _add_batch_dim_3 * unsqueeze;  unsqueeze = None
        max_1 = mul_1.max(dim = 0);  mul_1 = None
        values: "f32[2][1]cpu" = max_1[0]
        places: "i64[2][1]cpu" = max_1[1];  max_1 = None

        sum_1: "f32[][]cpu" = scores.sum();  scores = None
        child: "f32[][]cpu" = sum_1 + _add_batch_dim_4;  sum_1 = None
        getitem_2: "f32[3][2]cpu" = _add_batch_dim_3[(slice(1, None, None), 0)];  _add_batch_dim_3 = None
        expand: "f32[2][0]cpu" = _add_batch_dim_4.expand(2);  _add_batch_dim_4 = None
        cat: "f32[7][1]cpu" = torch.cat([values, getitem_2, expand]);  values = getitem_2 = expand = None
        child_1: "f32[7][1]cpu" = cat.view(7);  cat = None

        _remove_batch_dim_2: "f32[3][1]cpu" = torch._functorch.predispatch._remove_batch_dim(child, 1, 3, 0);  child = None
        _remove_batch_dim_3: "f32[7, 3][1, 7]cpu" = torch._functorch.predispatch._remove_batch_dim(child_1, 1, 3, 1);  child_1 = None
        _remove_batch_dim_4: "i64[3, 2][2, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(places, 1, 3, 0);  places = None

        # No stacktrace found for following nodes
        _vmap_decrement_nesting_2 = torch._functorch.predispatch._vmap_decrement_nesting();  _vmap_decrement_nesting_2 = None
        return (_remove_batch_dim_2, _remove_batch_dim_3, _remove_batch_dim_4, outer)
