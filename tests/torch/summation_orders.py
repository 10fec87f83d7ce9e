"""Writes tests/ops/cases/summation_orders: products, convolutions and sums of single precision that the interpreter is
to add up in PyTorch's order, bit by bit (tolerance 0). Needs PyTorch for x86 with MKL; one thread, as the corpus.

    python3 tests/torch/summation_orders.py tests/ops/cases
"""
import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch.fx.experimental.proxy_tensor import make_fx

torch.set_num_threads(1)
torch.manual_seed(0)
aten = torch.ops.aten
cases, tensors = [], {}


def stored(key, t):
    meta = {"key": key, "shape": list(t.shape), "stride": list(t.stride()), "dtype": str(t.dtype).removeprefix("torch.")}
    if t.is_complex():
        meta["stored_as"] = "view_as_real"
        t = torch.view_as_real(t)
    tensors[key] = t.contiguous().clone()
    return meta


def case(f, *inputs):
    i = len(cases)
    out = f(*inputs)
    outputs = [out] if isinstance(out, torch.Tensor) else [t for t in out if t is not None]
    graph = make_fx(f)(*inputs).print_readable(print_output=False, include_stride=True, include_device=True)
    cases.append({
        "idx": i, "dtype": str(inputs[0].dtype).removeprefix("torch."), "graph": graph, "pre_dispatch_graph": None,
        "tolerance": {"rtol": 0.0, "atol": 0.0},
        "inputs": [stored(f"c{i}.in.{k}", t) | {"requires_grad": False} for k, t in enumerate(inputs)],
        "outputs": [stored(f"c{i}.out.{k}", t) for k, t in enumerate(outputs)], "tangents": [], "grads": [],
    })


def matrix(rows, columns, layout, dtype, batch=()):
    """'r': by rows; 'c': by columns; 's': every other element of rows."""
    if layout == "c":
        return torch.randn(*batch, columns, rows, dtype=dtype).transpose(-1, -2)
    if layout == "s":
        return torch.randn(*batch, rows, 2 * columns, dtype=dtype)[..., ::2]
    return torch.randn(*batch, rows, columns, dtype=dtype)


for dtype in (torch.float32, torch.complex64):
    for left, right in ("rr", "rc", "cr", "cc", "sr", "rs"):
        for m, k, n in ((1, 21, 7), (7, 21, 1), (2, 22, 6), (3, 19, 13), (5, 23, 11), (5, 3, 5), (9, 200, 14)):
            a, b = matrix(m, k, left, dtype), matrix(k, n, right, dtype)
            if dtype.is_complex and "s" in left + right:
                continue
            case(lambda a, b: aten.mm(a, b), a, b)
        if "s" in left + right:
            continue
        for m, k, n in ((3, 5, 4), (5, 20, 5), (5, 90, 1)):
            if dtype.is_complex and n == 1 and right == "c":  # a kernel that is not followed, as of 2 and 3 columns
                continue
            case(lambda a, b: aten.bmm(a, b), matrix(m, k, left, dtype, (2,)), matrix(k, n, right, dtype, (2,)))
        case(lambda a, x: aten.mv(a, x), matrix(6, 21, left, dtype), torch.randn(21, dtype=dtype))
    if not dtype.is_complex:
        for left, right in ("rr", "rc", "cr", "cc"):
            for m, k, n in ((5, 22, 7), (8, 300, 16)):
                a, b, c = matrix(m, k, left, dtype), matrix(k, n, right, dtype), torch.randn(m, n)
                case(lambda c, a, b: aten.addmm(c, a, b), c, a, b)
                case(lambda c, a, b: aten.addmm(c, a, b, beta=0.2, alpha=0.6), c, a, b)
        for k in (5, 14, 37, 70):
            case(lambda x, y: aten.dot(x, y), torch.randn(k), torch.randn(k))

for x, w, groups, transposed in (
    ((1, 2, 6, 7), (3, 2, 3, 3), 1, False),  # MKL
    ((2, 3, 6, 7), (4, 3, 3, 3), 1, False),  # oneDNN, and so are the others
    ((2, 20, 5, 5), (18, 20, 2, 2), 1, False),
    ((2, 4, 5, 6), (4, 1, 3, 3), 4, False),
    ((2, 2, 4, 4, 4), (3, 2, 2, 2, 2), 1, False),
    ((2, 3, 4, 5), (3, 4, 3, 3), 1, True),
):
    rank = len(x) - 2
    common = ([1] * rank, [1] * rank, [1] * rank, transposed, [0] * rank, groups)
    image, weight = torch.randn(x), torch.randn(w)
    bias = torch.randn(w[1] * groups if transposed else w[0])
    case(lambda x, w, b: aten.convolution(x, w, b, *common), image, weight, bias)
    grad = torch.randn_like(aten.convolution(image, weight, bias, *common))
    case(lambda g, x, w: aten.convolution_backward(g, x, w, list(bias.shape), *common, [True, True, False]),
         grad, image, weight)

for sizes, order, dims in (
    ((70,), (0,), [0]), ((5,), (0,), [0]), ((3000,), (0,), [0]), ((9, 40), (0, 1), [1]), ((40, 9), (0, 1), [0]),
    ((40, 3), (0, 1), [0]), ((37, 70), (0, 1), [0]), ((6, 5, 7), (0, 1, 2), [0, 2]), ((6, 5, 7), (2, 0, 1), [0, 2]),
    ((2, 3, 5, 5), (0, 1, 2, 3), [0, 2, 3]), ((2, 3, 5, 5), (0, 2, 3, 1), [0, 2, 3]), ((17, 1, 9), (0, 1, 2), [1]),
):
    for dtype in (torch.float32, torch.complex64):
        x = torch.randn([sizes[d] for d in order], dtype=dtype).permute([order.index(d) for d in range(len(order))])
        case(lambda x: aten.sum(x, dims), x)
        case(lambda x: aten.mean(x, dims, True), x)

folder = pathlib.Path(sys.argv[1])
(folder / "summation_orders.json").write_text(
    json.dumps({"op": "summation_orders", "variant": "", "cases": cases}, indent=0).replace("\n", " ") + "\n")
save_file(tensors, str(folder / "summation_orders.safetensors"))
print(len(cases), "cases")
