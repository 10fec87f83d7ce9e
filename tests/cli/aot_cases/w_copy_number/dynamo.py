class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4, 3][3, 1]cpu"):
        l_x_ = L_x_

        # File: cases.py:78 in w_copy_number, code: x[2].copy_(torch.tensor(1.5)); x[0, 1] = True; return x * 2
        getitem: "f32[3][1]cpu" = l_x_[2]
        tensor: "f32[][]cpu" = torch.tensor(1.5)
        copy_: "f32[3][1]cpu" = getitem.copy_(tensor);  getitem = tensor = copy_ = None
        l_x_[(0, 1)] = True;  setitem = l_x_;  setitem = None
        mul: "f32[4, 3][3, 1]cpu" = l_x_ * 2;  l_x_ = None
        return (mul,)
