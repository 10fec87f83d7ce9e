class GraphModule(torch.nn.Module):
    def forward(self, L_i_: "i64[][]cpu", L_x_: "f32[3][1]cpu", L_w_: "f32[3][1]cpu"):
        l_i_ = L_i_
        l_x_ = L_x_
        l_w_ = L_w_

        cond_fn_0 = self.cond_fn_0
        body_fn_0 = self.body_fn_0
        while_loop = torch.ops.higher_order.while_loop(cond_fn_0, body_fn_0, (l_i_, l_x_), (l_w_,));  cond_fn_0 = body_fn_0 = l_i_ = l_x_ = l_w_ = None
        getitem: "i64[][]cpu" = while_loop[0]
        getitem_1: "f32[3][1]cpu" = while_loop[1];  while_loop = None
        return (getitem, getitem_1)

    class cond_fn_0(torch.nn.Module):
        def forward(self, child: "i64[][]cpu", child_1: "f32[3][1]cpu", l_w__body_fn: "f32[3][1]cpu"):
            lt: "b8[][]cpu" = child < 6;  child = None
            return lt

    class body_fn_0(torch.nn.Module):
        def forward(self, child_2: "i64[][]cpu", child_3: "f32[3][1]cpu", l_w__body_fn: "f32[3][1]cpu"):
            child: "i64[][]cpu" = child_2 + 1;  child_2 = None
            sum_1: "f32[][]cpu" = child_3.sum()
            sum_2: "f32[][]cpu" = l_w__body_fn.sum()
            gt: "b8[][]cpu" = sum_1 > sum_2;  sum_1 = sum_2 = None
            cond_true_0 = self.cond_true_0
            cond_false_0 = self.cond_false_0
            cond = torch.ops.higher_order.cond(gt, cond_true_0, cond_false_0, (child_3, l_w__body_fn));  gt = cond_true_0 = cond_false_0 = child_3 = l_w__body_fn = None
            child_4: "f32[3][1]cpu" = cond[0];  cond = None
            return (child, child_4)

        class cond_true_0(torch.nn.Module):
            def forward(self, child_3: "f32[3][1]cpu", l_w__false_branch: "f32[3][1]cpu"):
                child_4 = child_3

                mul: "f32[3][1]cpu" = child_4 * 0.5;  child_4 = None
                return (mul,)

        class cond_false_0(torch.nn.Module):
            def forward(self, child_3: "f32[3][1]cpu", l_w__false_branch: "f32[3][1]cpu"):
                child_4 = child_3

                abs_1: "f32[3][1]cpu" = l_w__false_branch.abs();  l_w__false_branch = None
                add: "f32[3][1]cpu" = child_4 + abs_1;  child_4 = abs_1 = None
                add_1: "f32[3][1]cpu" = add + 1;  add = None
                return (add_1,)
