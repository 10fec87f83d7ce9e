class GraphModule(torch.nn.Module):
    def forward(self, L_i_: "i64[][]cpu", L_x_: "f32[3][1]cpu", L_buffer_: "f32[3][1]cpu"):
        l_i_ = L_i_
        l_x_ = L_x_
        l_buffer_ = L_buffer_

        cond_fn_0 = self.cond_fn_0
        body_fn_0 = self.body_fn_0
        while_loop = torch.ops.higher_order.while_loop(cond_fn_0, body_fn_0, (l_i_, l_x_), (l_buffer_,), mutated_arg_indices = '2');  cond_fn_0 = body_fn_0 = l_i_ = l_x_ = None
        n: "i64[][]cpu" = while_loop[0]
        y: "f32[3][1]cpu" = while_loop[1];  while_loop = None

        add: "f32[3][1]cpu" = y + l_buffer_;  y = l_buffer_ = None
        return (n, add)

    class cond_fn_0(torch.nn.Module):
        def forward(self, child: "i64[][]cpu", child_1: "f32[3][1]cpu", l_buffer__body_fn: "f32[3][1]cpu"):
            lt: "b8[][]cpu" = child < 4;  child = None
            return lt

    class body_fn_0(torch.nn.Module):
        def forward(self, child_2: "i64[][]cpu", child_3: "f32[3][1]cpu", l_buffer__body_fn: "f32[3][1]cpu"):
            add_: "f32[3][1]cpu" = l_buffer__body_fn.add_(child_3);  l_buffer__body_fn = add_ = None

            child: "i64[][]cpu" = child_2 + 1;  child_2 = None
            child_4: "f32[3][1]cpu" = child_3 * 2;  child_3 = None
            return (child, child_4)
