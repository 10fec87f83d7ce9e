# cut from a repro of torch 2.14: a failing accuracy check
from torch.nn import *
class true_graph_0_0(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()



    def forward(self, arg0_1):
        mm = torch.ops.aten.mm.default(arg0_1, arg0_1);  arg0_1 = None
        relu = torch.ops.aten.relu.default(mm);  mm = None
        sin = torch.ops.aten.sin.default(relu);  relu = None
        return (sin,)


class false_graph_0_1(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()



    def forward(self, arg0_1):
        cos = torch.ops.aten.cos.default(arg0_1);  arg0_1 = None
        return (cos,)


class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.true_graph_0 = true_graph_0_0()
        self.false_graph_0 = false_graph_0_1()



    def forward(self, primals_1, primals_2, primals_3, primals_4):
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        cond = torch.ops.higher_order.cond(primals_1, true_graph_0, false_graph_0, (primals_2,));  primals_1 = true_graph_0 = false_graph_0 = None
        getitem = cond[0];  cond = None
        permute = torch.ops.aten.permute.default(primals_3, [1, 0]);  primals_3 = None
        addmm = torch.ops.aten.addmm.default(primals_4, primals_2, permute);  primals_4 = permute = None
        relu = torch.ops.aten.relu.default(addmm);  addmm = None
        add = torch.ops.aten.add.Tensor(getitem, relu);  getitem = None
        le = torch.ops.aten.le.Scalar(relu, 0);  relu = None
        return (add, primals_2, le)

def load_args(reader):
    buf0 = reader.storage('14307973389fe9f72c510d11857e440c73651b16', 1, dtype_hint=torch.bool)
    reader.tensor(buf0, (), dtype=torch.bool, is_leaf=True)  # primals_1
    buf1 = reader.storage('36d9b53750d7de6a8a3a378010a1edc0e3feff29', 256)
    reader.tensor(buf1, (8, 8), is_leaf=True)  # primals_2
    buf2 = reader.storage('e7ec70791e1d4e74954651d1acd9f7158e155fe7', 256)
    reader.tensor(buf2, (8, 8), requires_grad=True, is_leaf=True)  # primals_3
    buf3 = reader.storage('e1b6305eef4272d1c0c79ea5c3aeabfe8abbbd97', 32)
    reader.tensor(buf3, (8,), requires_grad=True, is_leaf=True)  # primals_4
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=True, command='minify', save_dir='/home/user/torch_compile_debug/run_2026_11_28_14_10_55_156334-pid_11145/minifier/checkpoints', tracing_mode='real', check_str=None)
        # To run it separately, do 
        # mod, args = run_repro(mod, load_args, accuracy=True, command='get_args', save_dir='/home/user/torch_compile_debug/run_2026_11_28_14_10_55_156334-pid_11145/minifier/checkpoints', tracing_mode='real', check_str=None)
        # mod(*args)