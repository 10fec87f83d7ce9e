class GraphModule(torch.nn.Module):
    def forward(self, L_seen_: "f32[4][1]cpu", L_x_: "f32[4, 3][3, 1]cpu", L_y_: "f32[3, 4][4, 1]cpu", L_places_: "i64[3][1]cpu"):
        l_seen_ = L_seen_
        l_x_ = L_x_
        l_y_ = L_y_
        l_places_ = L_places_

        lazy_load_decompositions = torch._functorch.predispatch.lazy_load_decompositions();  lazy_load_decompositions = None

        _vmap_increment_nesting = torch._functorch.predispatch._vmap_increment_nesting(3, 'error');  _vmap_increment_nesting = None

        _add_batch_dim: "f32[4][3]cpu" = torch._functorch.predispatch._add_batch_dim(l_x_, 1, 1)
        _add_batch_dim_1: "f32[4][1]cpu" = torch._functorch.predispatch._add_batch_dim(l_y_, 0, 1);  l_y_ = None
        _add_batch_dim_2: "i64[][]cpu" = torch._functorch.predispatch._add_batch_dim(l_places_, 0, 1);  l_places_ = None

        add_: "f32[4][1]cpu" = l_seen_.add_(1);  add_ = None

        made: "f32[4][1]cpu" = _add_batch_dim_1 * l_seen_

        getitem: "f32[3][1]cpu" = made[slice(1, None, None)]
        getitem_1: "f32[3][3]cpu" = _add_batch_dim[slice(None, 3, None)]
        mul_: "f32[3][1]cpu" = getitem.mul_(getitem_1);  getitem = getitem_1 = mul_ = None

        reshape: "i64[1][1]cpu" = _add_batch_dim_2.reshape(1);  _add_batch_dim_2 = None
        made[reshape] = 7.0;  setitem = made;  reshape = setitem = None

        getitem_2: "f32[3][3]cpu" = _add_batch_dim[slice(1, None, None)];  _add_batch_dim = None
        add__1: "f32[3][3]cpu" = getitem_2.add_(1);  getitem_2 = None
        sum_1: "f32[][]cpu" = add__1.sum();  add__1 = None
        child: "f32[4][1]cpu" = sum_1 + _add_batch_dim_1;  sum_1 = _add_batch_dim_1 = None
        child_1: "f32[4][1]cpu" = made.clamp_(max = 2.0);  made = None

        _remove_batch_dim: "f32[3, 4][4, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(child, 1, 3, 0);  child = None
        _remove_batch_dim_1: "f32[3, 4][4, 1]cpu" = torch._functorch.predispatch._remove_batch_dim(child_1, 1, 3, 0);  child_1 = None

        # No stacktrace found for following nodes
        _vmap_decrement_nesting = torch._functorch.predispatch._vmap_decrement_nesting();  _vmap_decrement_nesting = None

        mul_1: "f32[4, 3][3, 1]cpu" = l_x_ * 2;  l_x_ = None
        add_1: "f32[4][1]cpu" = l_seen_ + 1;  l_seen_ = None
        return (_remove_batch_dim, _remove_batch_dim_1, mul_1, add_1)
