class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3, 4][4, 1]cpu", L_y_: "f32[3][1]cpu", L_places_: "i64[3, 2][2, 1]cpu", L_z_: "f32[4, 3][3, 1]cpu"):
        l_x_ = L_x_
        l_y_ = L_y_
        l_places_ = L_places_
        l_z_ = L_z_

        child: "f32[3, 4][4, 1]cpu" = torch.full((3, 4), 0.1)
        child_1: "f64[3][1]cpu" = torch.full((3,), 0.1, dtype = torch.float64)

        lazy_load_decompositions = torch._functorch.predispatch.lazy_load_decompositions();  lazy_load_decompositions = None

        _vmap_increment_nesting = torch._functorch.predispatch._vmap_increment_nesting(3, 'error');  _vmap_increment_nesting = None

        _add_batch_dim: "f32[4][1]cpu" = torch._functorch.predispatch._add_batch_dim(child, 0, 1);  child = None
        _add_batch_dim_1: "f64[][]cpu" = torch._functorch.predispatch._add_batch_dim(child_1, 0, 1);  child_1 = None

        batched_outputs: "b8[4][1]cpu" = _add_batch_dim == _add_batch_dim_1;  _add_batch_dim = _add_batch_dim_1 = None

        compared: "b8[3, 4][4, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(batched_outputs, 1, 3, 0);  batched_outputs = None

        # No stacktrace found for following nodes
        _vmap_decrement_nesting = torch._functorch.predispatch._vmap_decrement_nesting();  _vmap_decrement_nesting = None

        lazy_load_decompositions_1 = torch._functorch.predispatch.lazy_load_decompositions();  lazy_load_decompositions_1 = None

        _vmap_increment_nesting_1 = torch._functorch.predispatch._vmap_increment_nesting(3, 'error');  _vmap_increment_nesting_1 = None

        _add_batch_dim_2: "f32[4][1]cpu" = torch._functorch.predispatch._add_batch_dim(l_x_, 0, 1)
        _add_batch_dim_3: "f32[][]cpu" = torch._functorch.predispatch._add_batch_dim(l_y_, 0, 1);  l_y_ = None
        _add_batch_dim_4: "i64[2][1]cpu" = torch._functorch.predispatch._add_batch_dim(l_places_, 0, 1);  l_places_ = None

        getitem: "f32[2][1]cpu" = _add_batch_dim_2[_add_batch_dim_4]
        double: "f64[][]cpu" = _add_batch_dim_3.double();  _add_batch_dim_3 = None
        child_2: "f32[2][1]cpu" = getitem * double;  getitem = double = None
        outer: "f32[4, 4][4, 1]cpu" = torch.outer(_add_batch_dim_2, _add_batch_dim_2)
        child_3: "f32[4, 4][4, 1]cpu" = torch.triu(outer);  outer = None
        index_select: "f32[2][1]cpu" = _add_batch_dim_2.index_select(0, _add_batch_dim_4);  _add_batch_dim_2 = _add_batch_dim_4 = None
        sum_1: "f32[][]cpu" = index_select.sum();  index_select = None
        child_4: "f32[][]cpu" = sum_1 + 4;  sum_1 = None

        _remove_batch_dim_1: "f32[3, 2][2, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(child_2, 1, 3, 0);  child_2 = None
        _remove_batch_dim_2: "f32[3, 4, 4][16, 4, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(child_3, 1, 3, 0);  child_3 = None
        _remove_batch_dim_3: "f32[3][1]cpu" = torch._functorch.predispatch._remove_batch_dim(child_4, 1, 3, 0);  child_4 = None

        # No stacktrace found for following nodes
        _vmap_decrement_nesting_1 = torch._functorch.predispatch._vmap_decrement_nesting();  _vmap_decrement_nesting_1 = None

        lazy_load_decompositions_2 = torch._functorch.predispatch.lazy_load_decompositions();  lazy_load_decompositions_2 = None

        _vmap_increment_nesting_2 = torch._functorch.predispatch._vmap_increment_nesting(3, 'error');  _vmap_increment_nesting_2 = None

        _add_batch_dim_5: "f32[4][3]cpu" = torch._functorch.predispatch._add_batch_dim(l_z_, 1, 1);  l_z_ = None

        child_5: "f32[][]cpu" = l_x_.sum();  l_x_ = None
        child_6: "i64[][]cpu" = _add_batch_dim_5.argmax();  _add_batch_dim_5 = None

        _remove_batch_dim_4: "f32[3][0]cpu" = torch._functorch.predispatch._remove_batch_dim(child_5, 1, 3, 0);  child_5 = None
        _remove_batch_dim_5: "i64[3][1]cpu" = torch._functorch.predispatch._remove_batch_dim(child_6, 1, 3, 0);  child_6 = None

        # No stacktrace found for following nodes
        _vmap_decrement_nesting_2 = torch._functorch.predispatch._vmap_decrement_nesting();  _vmap_decrement_nesting_2 = None
        return (_remove_batch_dim_1, _remove_batch_dim_2, _remove_batch_dim_3, _remove_batch_dim_4, _remove_batch_dim_5, compared)
