class GraphModule(torch.nn.Module):
    def forward(self, L_t_: "f32[3][1]cpu"):
        l_t_ = L_t_
        sin: "f32[3][1]cpu" = l_t_.sin();  l_t_ = None
        cos: "f32[3][1]cpu" = sin.cos();  sin = None
        sum_1: "f32[][]cpu" = cos.sum();  cos = None
        return (sum_1,)
