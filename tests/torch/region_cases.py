"""Makes tests/cli/aot_cases/r_*: what cond, while_loop, map, scan, checkpoint, vmap and functions do in eager PyTorch. Run it by hand with
PyTorch 2.13: region_cases.py FOLDER [NAME...]. A case is a function, its inputs, and whether it runs under no_grad."""
import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch._higher_order_ops.map import map as hop_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils.checkpoint import checkpoint

CASES = {}


def floats(*sizes, grad=False):
    return lambda: torch.randn(*sizes).requires_grad_(grad)


def whole(*sizes, grad=False):
    """Numbers that half types add and multiply without rounding."""
    return lambda: torch.randint(-1, 2, sizes).float().requires_grad_(grad)


def number(value):
    return lambda: torch.tensor(value)


def case(*inputs, no_grad=False):
    def add(f):
        CASES[f.__name__] = (f, inputs, no_grad)
        return f

    return add


@case(floats(3), floats(3), no_grad=True)
def r_cond_write(x, buffer):
    def yes():
        buffer.add_(1)
        return x + buffer

    def no():
        buffer.mul_(2)
        return x - buffer

    y = torch.cond(x.sum() > 0, yes, no)
    return y * buffer, buffer.clone()


@case(floats(4), floats(4, 2), no_grad=True)
def r_cond_write_one(x, buffer):
    def yes():
        buffer[:, 1].copy_(x)
        return x.sum()

    y = torch.cond(x.sum() < 1e9, yes, lambda: x.mean())
    return y + buffer.t()[1]


@case(number(0), floats(3), floats(3), no_grad=True)
def r_while_write(i, x, buffer):
    def body(i, x):
        buffer.add_(x)
        return i + 1, x * 2

    n, y = while_loop(lambda i, x: i < 4, body, (i, x))
    return n, y + buffer


@case(number(0), floats(3), floats(3))
def r_while_cond(i, x, w):
    def body(i, x):
        return i + 1, torch.cond(x.sum() > w.sum(), lambda x: x * 0.5, lambda x: x + w.abs() + 1, (x,))

    return while_loop(lambda i, x: i < 6, body, (i, x))


@case(floats(3, 4, grad=True), floats(4, 2, grad=True), floats(2, grad=True), floats(3, 2))
def r_cond_grad(x, w, b, scale):
    def yes(x, w):
        h = x @ w + b
        return h.relu(), h.exp().sum(1)

    y, z = torch.cond(scale.sum() < 1e9, yes, lambda x, w: (x @ w.sin(), (x * x).sum(1)), (x, w))
    return y * scale + z[:, None]


@case(floats(3, 4, grad=True), floats(4, 2, grad=True), floats(2, grad=True))
def r_cond_grad_no(x, w, b):
    y, z = torch.cond(w.sum() > 1e9, lambda x, w: (x @ w + b, x.sum(1)), lambda x, w: (x @ w.sin(), x.exp().sum(1)), (x, w))
    return y.tanh(), z * 2


@case(floats(4, grad=True), floats(4, grad=True))
def r_cond_nested_grad(x, y):
    def yes(x, y):
        return torch.cond(y.sum() > 1e9, lambda x, y: x * y, lambda x, y: (x / (1 + y * y)).sin(), (x, y)).cos()

    return torch.cond(x.sum() < 1e9, yes, lambda x, y: x - y, (x.exp(), y)) * y


@case(floats(4, grad=True), floats(4))
def r_cond_between_writes(x, y):
    a = x * 2
    a.mul_(y)
    b = torch.cond(y.sum() < 1e9, lambda a: a.sin() * y, lambda a: a.cos(), (a,))
    b.add_(a)
    return b, a


@case(floats(4, grad=True), floats(4, grad=True))
def r_cond_no_grad_inside(x, y):
    def yes(x, y):
        with torch.no_grad():
            s = x.exp()
        return s * y + x

    return torch.cond(y.sum() < 1e9, yes, lambda x, y: x.clone(), (x, y))


@case(floats(4, grad=True), floats(4, grad=True))
def r_cond_writes_within(x, y):
    def yes(x, y):
        a = x * y
        a[1:].mul_(y[:3])
        a.sin_()
        return a, a.sum()

    return torch.cond(y.sum() < 1e9, yes, lambda x, y: (x + y, x.sum()), (x, y))


@case(floats(5, 3, grad=True), floats(5), floats(3, grad=True))
def r_map_grad(xs, ys, w):
    a, b = hop_map(lambda p, w: ((p[0] * w).sin() * p[1], p[0].sum()), (xs, ys), w)
    return a, b.exp()


@case(floats(5, 3, 2), floats(2, 3, grad=True))
def r_map_matmul(xs, w):
    return hop_map(lambda x, w: torch.relu(x @ w).t().contiguous(), xs, w)


@case(floats(3, grad=True), floats(5, 3, grad=True), floats(3, 3, grad=True))
def r_scan_grad(init, xs, w):
    def step(h, x):
        n = torch.tanh(h @ w + x)
        return n, n * 2

    return scan(step, init, xs)


@case(floats(2, 3), floats(4, 2, 3), floats(3, 3, grad=True))
def r_scan_init_without_grad(init, xs, w):
    def step(h, x):
        n = (h * 0.5 + x) @ w
        return n, n.sum(1)

    h, ys = scan(step, init, xs)
    return h.sum(), ys




@case(floats(3), floats(4, 3), floats(3))
def r_scan(init, xs, w):
    return scan(lambda h, x: (h * w + x, h - x), init, xs)


@case(floats(3, 3, grad=True), floats(3, 3, grad=True))
def r_checkpoints(x, w):
    y = checkpoint(lambda t: torch.relu(t @ w).sin(), x, use_reentrant=False)
    return checkpoint(lambda t: (t @ w).cos() + t, y, use_reentrant=False)


@case(floats(3, 4, grad=True), floats(4, 4, grad=True))
def r_checkpoint_writes(x, w):
    def region(t):
        a = t @ w
        a[:, 1:].mul_(2)
        return a.exp().t(), a.sum()

    a, s = checkpoint(region, x, use_reentrant=False)
    return a * s


# Each weight is cast once: PyTorch takes a cast within cond from autocast's cache after it, without its gradient.
@case(floats(3, 4, grad=True), floats(4, 4, grad=True), floats(4, 2, grad=True))
def r_autocast_cond(x, w, v):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.cond(x.sum() < 1e9, lambda x, w: x @ w, lambda x, w: x @ w.t(), (x, w))
        return y.float() @ v


@case(whole(3, 4, grad=True), whole(4, 4, grad=True), whole(4, grad=True))
def r_autocast_shared(x, w, b):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.nn.functional.linear(torch.nn.functional.linear(x, w, b).relu(), w, b)
        with torch.autocast("cpu", enabled=False):
            z = y.float() @ w
    return z, torch.cat([y, x.bfloat16()])


@case(number(0), floats(3, grad=True), floats(3, grad=True))
def r_while_grad(i, x, w):
    n, y = while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, (x * w).sin()), (i, x))
    return n, y * 2


class Product(torch.autograd.Function):
    """Of two results, one is saved too; the backward writes in place and knows which gradients are wanted."""

    @staticmethod
    def forward(ctx, x, w, scale):
        y = (x @ w) * scale
        ctx.save_for_backward(x, w, y)
        return y, y.relu()

    @staticmethod
    def backward(ctx, a, b):
        x, w, y = ctx.saved_tensors
        g = a.clone()
        g.add_(b * (y > 0)).mul_(3)
        g[y > 1] = 0.5
        return g @ w.t() if ctx.needs_input_grad[0] else None, x.t() @ g, None


class Largest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        values, places = x.max(1, keepdim=True)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        ctx.sizes = x.shape
        return values, places

    @staticmethod
    def backward(ctx, values, places):
        return torch.zeros(ctx.sizes).scatter(1, *ctx.saved_tensors, values)


class Precise(torch.autograd.Function):
    """Its gradient arrives in float32, where its operand has bfloat16."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.t(), x.t() @ g


@case(floats(3, 4, grad=True), floats(4, 2, grad=True), floats(3, 4))
def r_function(x, w, z):
    y, positive = Product.apply(x, w, 2.0)
    # Only one gradient is wanted here, and one result is not read.
    return y.sum(), positive * Product.apply(z, w, 0.5)[0]


@case(floats(3, 4, grad=True), floats(3, 4))
def r_function_places(x, z):
    values, places = Largest.apply(x * 2)
    with torch.no_grad():
        unseen = Largest.apply(x + z)[0]
    return values * places + Largest.apply(z)[0] * unseen, places


@case(whole(3, 4, grad=True), whole(4, 4, grad=True))
def r_function_autocast(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return checkpoint(lambda x: Precise.apply(x @ w, w).float(), x, use_reentrant=False)


@case(floats(3, 4, grad=True), floats(3, 4, 2, grad=True), floats(5, 4, grad=True), floats(3))
def r_vmap(x, y, w, z):
    """Operators that have rules for batches: the results are those of whole tensors."""
    def f(a, b, c):
        scores = torch.nn.functional.linear(a, w).softmax(-1)
        values, places = (b * a.unsqueeze(-1)).max(dim=0)
        return scores.sum() + c, torch.cat([values, b[1:, 0], c.expand(2)]).view(7), places

    outer = torch.vmap(lambda a: torch.vmap(lambda b: torch.dot(a, b) * z)(w), out_dims=1)(x)
    return *torch.vmap(f, out_dims=(0, 1, 0))(x, y, z), outer


@case(floats(3, 4, grad=True), number([1.0, 2.0, 3.0]), number([[0, 2], [1, 1], [3, 0]]), floats(4, 3))
def r_vmap_parts(x, y, places, z):
    """Operators without, computed for each part; a tensor without dimensions promotes types as such."""
    def f(a, b, i):
        return a[i] * b.double(), torch.triu(torch.outer(a, a)), a.index_select(0, i).sum() + a.size(0)

    compared = torch.vmap(lambda a, b: a == b)(torch.full((3, 4), 0.1), torch.full((3,), 0.1, dtype=torch.float64))
    return *torch.vmap(f)(x, y, places), *torch.vmap(lambda a: (x.sum(), a.argmax()), in_dims=1)(z), compared


@case(floats(4, 3), floats(3, 4), floats(4), number([0, 2, 1]), no_grad=True)
def r_vmap_writes(x, y, seen, places):
    """Writes to parts of the inputs, to a tensor without a batch, and to what is made within."""
    def f(a, b, i):
        seen.add_(1)
        made = b * seen
        made[1:].mul_(a[:3])
        made[i.reshape(1)] = 7.0
        return a[1:].add_(1).sum() + b, made.clamp_(max=2.0)

    results = torch.vmap(f, in_dims=(1, 0, 0))(x, y, places)
    return *results, x * 2, seen + 1


@case(floats(3, 4, grad=True), floats(5, 4, grad=True), floats(5, grad=True), floats(3, 5))
def r_func_grad(x, w, b, y):
    """Gradients of each sample, a step of an inner optimiser, and a penalty of gradients."""
    def loss(params, a, c):
        out = torch.nn.functional.linear(torch.nn.functional.silu(a), *params)
        return torch.nn.functional.mse_loss(out.softmax(0), c)

    each = torch.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))((w, b), x, y)
    g, value = torch.func.grad_and_value(lambda a: (a.tanh() @ w.t()).logsumexp(1).sum() + x.sum())(x)
    with torch.no_grad():
        unseen = torch.func.grad(lambda a: (a * a * x).sum())(x)

    def writes(a):
        made = a * 2
        before = made.exp()
        made.sin_().mul_(a)
        made += before
        return made.sum()

    unseen = unseen + torch.func.grad(writes)(x)
    return *each, g.pow(2).sum() + value, (x - 0.1 * g) * unseen


@case(floats(4), floats(4), floats(3, 4, grad=True))
def r_func_jacobians(x, v, w):
    def f(a):
        return torch.nn.functional.gelu(w @ a) * a.sum()

    def energy(a):
        with torch.no_grad():
            scale = a.abs() + 1
        return (f(a).sigmoid().prod() / scale).sum()

    def writes(a):
        factor = v * 2
        before = a * factor
        factor.add_(1)
        return before + factor * a

    written = torch.func.jvp(writes, (x,), (v,))
    jvp = *torch.func.jvp(torch.func.grad(energy), (x,), (v,)), *written
    return torch.func.jacrev(f)(x).contiguous(), torch.func.jacfwd(f)(x), torch.func.hessian(energy)(x), *jvp


@case(floats(2, 3, 6, 6, grad=True), floats(4, 3, 3, 3, grad=True), floats(4, grad=True), floats(9, grad=True))
def r_func_second(x, w, b, v):
    """Gradients of gradients: a penalty over a convolution and a norm, and each activation's."""
    def critic(a, kernel, bias):
        y = torch.nn.functional.conv2d(a, kernel, bias, stride=2, padding=1)
        return torch.nn.functional.layer_norm(y, (3, 3), v.view(3, 3)).tanh().sum()

    gx, gw, gb = torch.func.grad(critic, argnums=(0, 1, 2))(x, w, b)
    functional = torch.nn.functional
    each = [functional.gelu, lambda a: functional.gelu(a, approximate="tanh"), functional.silu, functional.elu,
            functional.softplus, functional.leaky_relu, functional.relu, functional.hardtanh, functional.hardswish,
            functional.hardshrink, functional.softshrink, functional.logsigmoid, torch.tanh, torch.sigmoid]
    seconds = torch.stack([torch.func.grad(lambda a: f(a).pow(2).sum())(v) for f in each])
    loss = torch.func.grad(lambda a: functional.mse_loss(a * a, v.sin()))(v)
    ce = torch.func.grad(lambda a: functional.cross_entropy(a[None], torch.tensor([3]), label_smoothing=0.1))(v)
    return (gx.flatten(1).norm(dim=1) - 1).pow(2).mean(), gw.abs().sum(), gb, seconds, loss * ce


def described(key, t, **more):
    return {"key": key, "shape": list(t.shape), "stride": list(t.stride()), "dtype": str(t.dtype).removeprefix("torch."),
            **more}


def make(name, folder):
    f, inputs, no_grad = CASES[name]
    torch._dynamo.reset()
    torch.manual_seed(sum(name.encode()))
    given = [make_input() for make_input in inputs]
    tensors = {f"storage.{i}": t.detach().clone().reshape(-1) for i, t in enumerate(given)}
    tensors |= {f"in.{i}": t.detach().clone() for i, t in enumerate(given)}
    captured = []

    def capture(graph, examples):
        captured.append((graph.print_readable(print_output=False, include_stride=True, include_device=True),
                         [n.name for n in graph.graph.nodes if n.op == "placeholder"],
                         [next(i for i, t in enumerate(given) if t is e) for e in examples]))
        return graph

    with torch.set_grad_enabled(not no_grad):
        out = torch.compile(f, backend=capture, fullgraph=True)(*given)
    out = list(out) if isinstance(out, (tuple, list)) else [out]
    (text, names, order), = captured
    result = {"name": name, "random": False, "inputs": [], "storages": [], "outputs": [], "inputs_after": [],
              "tangents": [], "grads": [], "placeholders": [{"name": n, "key": f"in.{i}"} for n, i in zip(names, order)]}
    for i, t in enumerate(given):
        result["inputs"].append(described(f"in.{i}", t, requires_grad=t.requires_grad, is_leaf=True, storage=i,
                                          storage_offset=0))
        result["storages"].append({"key": f"storage.{i}"})
        result["inputs_after"].append(described(f"after.in.{i}", t, input=f"in.{i}", requires_grad=t.requires_grad,
                                                storage_offset=0))
        tensors[f"after.in.{i}"] = t.detach().clone()
    roots, tangents = [], []
    for i, t in enumerate(out):
        result["outputs"].append(described(f"out.{i}", t, requires_grad=t.requires_grad, storage_offset=t.storage_offset(),
                                           aliasing={}))
        tensors[f"out.{i}"] = t.detach().clone().contiguous()
        if t.requires_grad:
            roots.append(t)
            exact = all(torch.equal(x, x.detach().round()) for x in given)
            tangents.append(torch.randint_like(t, -1, 2) if exact else torch.randn_like(t))
            result["tangents"].append(described(f"tan.out.{i}", t, of=f"out.{i}"))
            tensors[f"tan.out.{i}"] = tangents[-1].clone().contiguous()
    if roots:
        torch.autograd.backward(roots, tangents)
        for i, t in enumerate(given):
            if t.grad is not None:
                result["grads"].append(described(f"grad.in.{i}", t.grad, leaf=f"in.{i}"))
                tensors[f"grad.in.{i}"] = t.grad.clone().contiguous()
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "case.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")
    text = "\n".join("        # File: " + line.split(", code: ", 1)[1] if "# File: " in line and ", code: " in line else line
                     for line in text.split("\n"))
    (folder / "dynamo.py").write_text("\n".join(l for l in text.split("\n") if "# File: " not in l).strip() + "\n")
    save_file(tensors, folder / "io.safetensors")


for wanted in sys.argv[2:] or CASES:
    make(wanted, pathlib.Path(sys.argv[1]))
