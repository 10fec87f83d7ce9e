class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[2, 3][3, 1]cpu"):
        l_x_ = L_x_

        # File: cases.py:1 in n_numbers, code: x[:, 1] = 7; x[0].copy_(3.25); s = torch.tensor(2.5); s.add_(1)
        l_x_[(slice(None, None, None), 1)] = 7;  setitem = l_x_;  setitem = None
        getitem: "f32[3][1]cpu" = l_x_[0]
        copy_: "f32[3][1]cpu" = getitem.copy_(3.25);  getitem = copy_ = None
        s: "f32[][]cpu" = torch.tensor(2.5)
        add_: "f32[][]cpu" = s.add_(1);  add_ = None

        # File: cases.py:2 in n_numbers, code: t = torch.tensor([[1, 2], [3, 4]])
        t: "i64[2, 2][2, 1]cpu" = torch.tensor([[1, 2], [3, 4]])
        d: "f64[2][1]cpu" = torch.tensor([True, 2.5], dtype = torch.float64)

        # File: cases.py:3 in n_numbers, code: return x * s, t, d
        mul: "f32[2, 3][3, 1]cpu" = l_x_ * s;  l_x_ = s = None
        return (mul, t, d)
