class GraphModule(torch.nn.Module):
    def forward(self, L_y_: "f32[4][1]cpu", L_x_: "f32[4][1]cpu"):
        l_y_ = L_y_
        l_x_ = L_x_

        sum_1: "f32[][]cpu" = l_y_.sum()
        lt: "b8[][]cpu" = sum_1 < 1000000000.0;  sum_1 = None
        cond_true_0 = self.cond_true_0
        cond_false_0 = self.cond_false_0
        cond = torch.ops.higher_order.cond(lt, cond_true_0, cond_false_0, (l_x_, l_y_));  lt = cond_true_0 = cond_false_0 = l_x_ = l_y_ = None
        getitem: "f32[4][1]cpu" = cond[0]
        getitem_1: "f32[][]cpu" = cond[1];  cond = None
        return (getitem, getitem_1)

    class cond_true_0(torch.nn.Module):
        def forward(self, l_x_: "f32[4][1]cpu", l_y_: "f32[4][1]cpu"):
            l_x__1 = l_x_
            l_y__1 = l_y_

            a: "f32[4][1]cpu" = l_x__1 * l_y__1;  l_x__1 = None

            getitem: "f32[3][1]cpu" = a[slice(1, None, None)]
            getitem_1: "f32[3][1]cpu" = l_y__1[slice(None, 3, None)];  l_y__1 = None
            mul_: "f32[3][1]cpu" = getitem.mul_(getitem_1);  getitem = getitem_1 = mul_ = None

            sin_: "f32[4][1]cpu" = a.sin_();  sin_ = None

            child: "f32[][]cpu" = a.sum()
            return (a, child)

    class cond_false_0(torch.nn.Module):
        def forward(self, l_x_: "f32[4][1]cpu", l_y_: "f32[4][1]cpu"):
            l_x__1 = l_x_
            l_y__1 = l_y_

            child: "f32[4][1]cpu" = l_x__1 + l_y__1;  l_y__1 = None
            child_1: "f32[][]cpu" = l_x__1.sum();  l_x__1 = None
            return (child, child_1)
