"""Joint graphs of the corpus as PyTorch's GraphModules."""
import re

import torch

DTYPES = {"f32": torch.float32, "f64": torch.float64, "i64": torch.int64, "i32": torch.int32, "b8": torch.bool}


def read(path):
    """The joint graph as a GraphModule with flat parameters, and inputs of its annotations."""
    lines = open(path).read().splitlines()
    flat = next(i for i, l in enumerate(lines) if "fx_pytree.tree_flatten_spec" in l)
    names = [n.strip() for n in lines[flat].split("=")[0].split(",") if n.strip()]
    kinds = dict(re.findall(r'(\w+): "([^"]+)"', "\n".join(lines[:flat])))
    body = "\n".join(lines[flat + 1:]).replace("pytree.tree_unflatten(", "(").replace(", self._out_spec)", ")")
    text = f"class Joint(torch.nn.Module):\n    def forward(self, {', '.join(names)}):\n{body}\n"
    scope = dict(torch=torch, device=torch.device, inf=float("inf"), nan=float("nan"))
    exec(text, scope)
    inputs = []
    for name in names:
        dtype, sizes = re.match(r"(\w+)\[([^\]]*)\]", kinds[name]).groups()
        shape = [int(s) for s in sizes.split(",") if s.strip()]
        floats = DTYPES[dtype].is_floating_point
        inputs.append(0.1 * torch.randn(shape, dtype=DTYPES[dtype]) if floats
                      else torch.randint(0, 2, shape, dtype=DTYPES[dtype]))
    return torch.fx.symbolic_trace(scope["Joint"]()), inputs
