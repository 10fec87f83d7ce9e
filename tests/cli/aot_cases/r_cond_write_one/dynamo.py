class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4][1]cpu", L_buffer_: "f32[4, 2][2, 1]cpu"):
        l_x_ = L_x_
        l_buffer_ = L_buffer_

        sum_1: "f32[][]cpu" = l_x_.sum()
        lt: "b8[][]cpu" = sum_1 < 1000000000.0;  sum_1 = None
        cond_true_0 = self.cond_true_0
        cond_false_0 = self.cond_false_0
        cond = torch.ops.higher_order.cond(lt, cond_true_0, cond_false_0, (l_x_, l_buffer_));  lt = cond_true_0 = cond_false_0 = l_x_ = None
        y: "f32[][]cpu" = cond[0];  cond = None

        t: "f32[2, 4][1, 2]cpu" = l_buffer_.t();  l_buffer_ = None
        getitem_1: "f32[4][2]cpu" = t[1];  t = None
        add: "f32[4][1]cpu" = y + getitem_1;  y = getitem_1 = None
        return (add,)

    class cond_true_0(torch.nn.Module):
        def forward(self, l_x_: "f32[4][1]cpu", l_buffer__true_branch: "f32[4, 2][2, 1]cpu"):
            l_x__1 = l_x_

            getitem: "f32[4][2]cpu" = l_buffer__true_branch[(slice(None, None, None), 1)];  l_buffer__true_branch = None
            copy_: "f32[4][2]cpu" = getitem.copy_(l_x__1);  getitem = copy_ = None

            sum_1: "f32[][]cpu" = l_x__1.sum();  l_x__1 = None
            return (sum_1,)

    class cond_false_0(torch.nn.Module):
        def forward(self, l_x_: "f32[4][1]cpu", l_buffer__true_branch: "f32[4, 2][2, 1]cpu"):
            l_x__1 = l_x_

            mean: "f32[][]cpu" = l_x__1.mean();  l_x__1 = None
            return (mean,)
