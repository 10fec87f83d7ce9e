class GraphModule(torch.nn.Module):
    def forward(self, L_a_: "f32[4, 4][4, 1]cpu"):
        l_a_ = L_a_

        # File: cases.py:256 in x_diag_write, code: a.diagonal().mul_(2); b = a.t(); b[0] = b[1] * 3; return a.exp()
        diagonal: "f32[4][5]cpu" = l_a_.diagonal()
        mul_: "f32[4][5]cpu" = diagonal.mul_(2);  diagonal = mul_ = None
        b: "f32[4, 4][1, 4]cpu" = l_a_.t()
        getitem: "f32[4][4]cpu" = b[1]
        mul: "f32[4][1]cpu" = getitem * 3;  getitem = None
        b[0] = mul;  setitem = b;  b = mul = setitem = None
        exp: "f32[4, 4][4, 1]cpu" = l_a_.exp();  l_a_ = None
        return (exp,)
