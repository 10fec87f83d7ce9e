"""Small programs of many kinds, each with its arguments: a dictionary of functions that make (function, calls).

A call is a tuple of arguments. Each call is made with fresh copies, in eager and compiled, and results, gradients and
written arguments are compared.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

PROGRAMS = {}


def program(make):
    PROGRAMS[make.__name__] = make
    return make


def t(*sizes, dtype=torch.float32, grad=False, seed=0):
    g = torch.Generator().manual_seed(seed + sum(sizes) * 31 + len(sizes))
    made = torch.randn(*sizes, generator=g, dtype=torch.float64).to(dtype)
    return made.requires_grad_(grad)


def ints(*sizes, high=10, seed=0):
    return torch.randint(0, high, sizes, generator=torch.Generator().manual_seed(seed))


# What programs compute.
@program
def pointwise():
    return lambda a, b: torch.tanh(a) * b.sigmoid() + a.exp() / (1 + b * b), [(t(4, 5), t(4, 5, seed=1))]


@program
def broadcast():
    return lambda a, b: (a + b) * a.mean(), [(t(4, 1), t(3, seed=1))]


@program
def reductions():
    return lambda a: (a.sum(0), a.mean(-1, keepdim=True), a.max(1), a.argmin(0), a.var(1), a.logsumexp(0)), [(t(6, 7),)]


@program
def products():
    return lambda a, b, c: torch.bmm(a, b) + torch.addmm(c, a[0], b[0]), [(t(2, 3, 4), t(2, 4, 5), t(3, 5))]


@program
def softmax_cross_entropy():
    return lambda x, y: F.cross_entropy(x, y), [(t(8, 5, grad=True), ints(8, high=5))]


@program
def linear_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 3))
    return model, [(t(4, 6),), (t(4, 6, seed=3),)]


@program
def norms_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(3, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(), nn.LayerNorm(80))
    return model, [(t(4, 3, 10),), (t(4, 3, 10, seed=3),)]


@program
def convolution_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.GroupNorm(2, 8), nn.SiLU(), nn.AdaptiveAvgPool2d(1))
    return model, [(t(2, 3, 9, 9),)]


@program
def attention_training():
    torch.manual_seed(0)
    model = nn.MultiheadAttention(16, 4, batch_first=True)
    return lambda x: model(x, x, x, need_weights=False)[0], [(t(2, 5, 16, grad=True),)]


@program
def causal_attention():
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [
        (t(2, 2, 6, 8, grad=True), t(2, 2, 6, 8, grad=True, seed=1), t(2, 2, 6, 8, grad=True, seed=2))]


@program
def embedding_training():
    torch.manual_seed(0)
    model = nn.EmbeddingBag(10, 4, mode="mean")
    return lambda i: model(i).square().sum(), [(ints(3, 5),)]


@program
def lstm_training():
    torch.manual_seed(0)
    model = nn.LSTM(4, 6)
    return lambda x: model(x)[0], [(t(3, 2, 4, grad=True),)]


@program
def transformer_layer():
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    return model, [(t(2, 5, 16),)]


# Writes.
@program
def mutated_argument():
    def f(a, b):
        a.add_(b)
        return a * 2

    return f, [(t(4), t(4, seed=1))]


@program
def mutated_view():
    def f(a):
        a[1:3].mul_(3)
        a.t()[0].zero_()
        return a.sum()

    return f, [(t(4, 5),)]


@program
def mutated_buffer():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))
            self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

        def forward(self, x):
            self.seen.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
            self.steps += 1
            return x - self.seen

    return Counter(), [(t(4, 3, grad=True),), (t(4, 3, grad=True, seed=2),)]


@program
def mutated_aliases():
    def f(a, b):
        a.add_(1)
        return b * 2

    def arguments():
        base = torch.arange(6.0)
        return base[:4], base[2:]

    return f, [arguments]


@program
def mutated_noncontiguous():
    def f(a):
        a.copy_(torch.cos(a) + 1)
        return a + 1

    return f, [lambda: (t(4, 6).t(),), lambda: (t(8, 6)[::2],)]


@program
def index_put():
    def f(a, i, v):
        a[i] = v
        return a.index_add(0, i, v)

    return f, [(t(5, 3), torch.tensor([0, 3]), t(2, 3, seed=1))]


@program
def out_argument():
    return lambda a, out: torch.sin(a, out=out), [(t(4), t(4, seed=2))]


@program
def foreach_update():
    def f(ps, gs):
        torch._foreach_mul_(ps, 0.9)
        torch._foreach_add_(ps, gs, alpha=-0.1)
        return ps[0].sum()

    return f, [lambda: ([t(4), t(2, 3)], [t(4, seed=1), t(2, 3, seed=1)])]


@program
def written_slice_scatter():
    def f(a, b):
        a = a.clone()
        a[:, ::2] = b
        a[..., -1] += 1
        return a

    return f, [(t(3, 6, grad=True), t(3, 3, seed=4))]


# Views and aliases.
@program
def returned_views():
    return lambda a: (a.view(-1), a.t(), a[1], a.unsqueeze(0)), [(t(4, 5),)]


@program
def returned_argument():
    return lambda a, b: (a, a + b, b), [(t(3), t(3, seed=1))]


@program
def returned_aliases():
    def f(a):
        b = a * 2
        return b, b.view(-1), b[0], b

    return f, [(t(3, 4, grad=True),), (t(3, 4),)]


@program
def strided_results():
    return lambda a: ((a + 1).t(), (a * 2).permute(1, 0), a.exp().expand(2, 4, 5)), [(t(4, 5),)]


@program
def noncontiguous_arguments():
    return lambda a, b: a.t() @ b + 1, [lambda: (t(6, 4)[::2], t(3, 5)), lambda: (t(4, 3).t(), t(5, 3).t())]


@program
def overlapping_arguments():
    return lambda a: a * 2 + a.sum(0), [lambda: (t(1, 5).expand(4, 5),), lambda: (torch.arange(9.0).as_strided((4, 3), (2, 1)),)]


@program
def unaligned_arguments():
    return lambda a, b: a * b + 1, [lambda: (torch.arange(130.0)[1:129], torch.arange(131.0)[3:131])]


@program
def channels_last():
    torch.manual_seed(0)
    model = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    return model, [lambda: (t(2, 3, 6, 6).to(memory_format=torch.channels_last),)]


@program
def view_of_dtype():
    return lambda a: a.view(torch.int32) & 0x7FFFFFFF, [(t(6),)]


@program
def empty_tensors():
    return lambda a, b: (torch.cat([a, b]), a.sum(), a * 2), [(t(0, 3), t(2, 3))]


@program
def scalars():
    return lambda a, b: a * b + 2, [(torch.tensor(3.0), torch.tensor(2))]


# Sizes.
@program
def dynamic_batch():
    return lambda a: F.softmax(a * 2, -1) @ a.t(), [(t(n, 5),) for n in (3, 4, 7, 1, 9)]


@program
def dynamic_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    return model, [(t(n, 4),) for n in (2, 3, 5, 8, 3)]


@program
def dynamic_views():
    def f(a):
        n = a.shape[0]
        return a.reshape(n // 2, -1), a.new_zeros(n + 1), n * 2

    return f, [(t(n, 3),) for n in (4, 6, 8, 12)]


@program
def dynamic_cat():
    return lambda a, b: torch.cat([a, b], 1).cumsum(1), [(t(2, n), t(2, n + 1)) for n in (2, 5, 6)]


@program
def dynamic_guard():
    def f(a):
        return a * 2 if a.shape[0] > 5 else a - 1

    return f, [(t(n),) for n in (3, 4, 8, 9)]


@program
def data_dependent_sizes():
    return lambda a: (a[a > 0] * 2, torch.nonzero(a)), [(t(9),), (t(11),)]


@program
def integer_argument():
    return lambda a, n: a * n + n, [(t(4), 2), (t(4), 3), (t(4), 7)]


@program
def float_argument():
    return lambda a, x: a * x, [(t(4), 0.5), (t(4), 0.25), (t(4), 3.0)]


@program
def repeated_numbers():
    return lambda a, n: (a * n, round(n / 3), max(n, 7)), [(t(4), n) for n in (5, 6, 6, 9, 5)]


@program
def signed_zeros():
    return lambda a, x: a / x, [(t(4), x) for x in (0.5, 0.25, 0.0, -0.0, 0.0)]


def captured(function):
    """Graphs have the sizes and numbers that values decide, in place of graph breaks."""
    function.config = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
    return function


@program
def captured_numbers():
    f = captured(lambda a: (a.sum().item(), a.long().max().item(), a * a[0].item()))
    return f, [(t(4),), (t(4, seed=2) * 5,), (t(4, seed=5) * 9,)]


@program
def captured_sizes():
    return captured(lambda a: (torch.nonzero(a), a[a > 0] * 2, (a > 0).sum())), [
        (torch.tensor([1.0, -1, 2, 0]),), (torch.tensor([1.0, 1, 2, 3]),), (torch.tensor([-1.0, -1, -2, 0]),)]


# Random numbers.
@program
def dropout_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.3), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
    return model, [(t(4, 5),), (t(4, 5),)]


@program
def drawn_in_order():
    def f(a):
        x = torch.rand_like(a)
        y = torch.exp(x + a)
        z = torch.randn(4) + y
        return x, torch.bernoulli(torch.full((4,), 0.5)) * z, torch.randint(0, 9, (3,)), torch.randperm(6)

    return f, [(t(4),), (t(4),)]


@program
def dropout_attention():
    return lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=0.2), [(t(1, 2, 5, 8, grad=True),)]


# Operators and control.
@torch.library.custom_op("partita_test::twice_plus", mutates_args=())
def twice_plus(x: torch.Tensor, n: float) -> torch.Tensor:
    return x * 2 + n


@twice_plus.register_fake
def _(x, n):
    return torch.empty_like(x)


def _twice_backward(ctx, grad):
    return grad * 2, None


twice_plus.register_autograd(_twice_backward)


@torch.library.custom_op("partita_test::scale_", mutates_args=("x",))
def scale_(x: torch.Tensor, n: float) -> None:
    x.mul_(n)


@program
def custom_operator():
    return lambda a: torch.sin(twice_plus(torch.cos(a), 0.5)) * 2, [(t(4, grad=True),)]


@program
def custom_writing_operator():
    def f(a):
        b = a + 1
        scale_(b, 3.0)
        return b.sin()

    return f, [(t(4),)]


@program
def autograd_function():
    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(-1, 1)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (x.abs() <= 2) * 3

    return lambda a: Clip.apply(a * 2).sum(), [(t(6, grad=True),)]


@program
def conditional():
    return lambda p, a: torch.cond(p, lambda x: x.sin() + 1, lambda x: x.cos() - 1, (a,)), [
        (torch.tensor(True), t(4)), (torch.tensor(False), t(4))]


@program
def loop():
    def f(n, x):
        return torch.while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 1.5), (n, x))

    return f, [(torch.tensor(3), t(4))]


@program
def graph_break():
    def f(a):
        b = a * 2
        torch._dynamo.graph_break()
        return b.sin() + a

    return f, [(t(4, grad=True),)]


@program
def branch_on_value():
    def f(a):
        if a.sum() > 0:
            return a * 2
        return a - 1

    return f, [(torch.ones(3),), (-torch.ones(3),)]


@program
def item():
    return lambda a: a * a[0].item(), [(t(4),), (t(4, seed=2),)]


@program
def print_in_between():
    def f(a):
        b = a.sin()
        str(b)
        return b.cos()

    return f, [(t(4),)]


@program
def checkpoint():
    from torch.utils.checkpoint import checkpoint as run

    torch.manual_seed(0)
    layer = nn.Linear(4, 4)
    return lambda x: run(lambda y: torch.tanh(layer(y)).sin(), x, use_reentrant=False), [(t(3, 4, grad=True),)]


@program
def vmap_and_grad():
    def f(a, w):
        return torch.func.vmap(torch.func.grad(lambda x, w: (x @ w).tanh().sum()), in_dims=(0, None))(a, w)

    return f, [(t(3, 4), t(4, 2, seed=1))]


@program
def second_gradient():
    def f(a):
        return (a.sin() * a).sum()

    def g(a):
        return torch.func.hessian(f)(a)

    return g, [(t(3),)]


# Dtypes and modes.
@program
def complex_numbers():
    return lambda a, b: (a * b.conj(), torch.view_as_real(a), a.abs(), torch.fft.fft(b)), [
        (t(4, dtype=torch.complex64), t(4, dtype=torch.complex64, seed=1))]


@program
def conjugated_argument():
    return lambda a: a * 2, [lambda: (t(4, dtype=torch.complex64).conj(),)]


@program
def bfloat16_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)).to(torch.bfloat16)
    return model, [(t(4, 8, dtype=torch.bfloat16),)]


@program
def bfloat16_statistics():
    norm = nn.BatchNorm1d(4).to(torch.bfloat16).requires_grad_(False)
    return norm, [(t(5, 4, 6, dtype=torch.bfloat16),)] * 2


@program
def autocast():
    torch.manual_seed(0)
    model = nn.Linear(8, 4)

    def f(x):
        with torch.autocast("cpu", torch.bfloat16):
            return model(x)

    return f, [(t(4, 8),)]


@program
def half():
    return lambda a: (a * 2).relu().sum(-1), [(t(4, 5, dtype=torch.float16),)]


@program
def double():
    return lambda a: torch.erf(a) + torch.lgamma(a.abs() + 1), [(t(4, dtype=torch.float64, grad=True),)]


@program
def integers():
    return lambda a, b: (a + b, a // 3, a % 4, a & b, a << 1, (a * 2).to(torch.int8), a.float().mean()), [
        (ints(6), ints(6, seed=1))]


@program
def booleans():
    return lambda a, b: ((a > 0) & (b > 0), torch.where(a > b, a, b), (a > 0).any(), ~(a > 0)), [(t(6), t(6, seed=1))]


@program
def promoted_dtypes():
    return lambda a, b: (a + b, a / b.abs().add(1), torch.cat([a, b.double()]), a ** 2.5), [(ints(4), t(4))]


@program
def no_grad():
    def f(a):
        with torch.no_grad():
            b = a * 2
        return b + a

    return f, [(t(4, grad=True),)]


@program
def inference_mode():
    def f(a):
        return a * 2 + 1

    def run(a):
        with torch.inference_mode():
            return f(a)

    return run, [(t(4),)]


@program
def detached():
    return lambda a: (a.detach() * a, a.detach()), [(t(4, grad=True),)]


@program
def nested_results():
    return lambda a: {"x": a + 1, "y": [a * 2, None, (a.sum(), "text", 3)]}, [(t(4),)]


@program
def keyword_arguments():
    return lambda a, *, scale=2.0, shift=None: a * scale + (0 if shift is None else shift), [(t(4),)]


@program
def constants():
    return lambda a: a + torch.tensor([1.0, 2.0, 3.0]) * torch.arange(3), [(t(3),)]


@program
def sorting():
    return lambda a: (a.sort(0), a.topk(2, 1), a.unique(), a.median()), [(t(4, 5),)]


@program
def linear_algebra():
    return lambda a: (torch.linalg.inv(a), torch.linalg.det(a), torch.linalg.norm(a)), [(t(3, 3) + 3 * torch.eye(3),)]


@program
def determinants_training():
    def f(a, b):
        copied = (b * 2).mT.contiguous().mT
        return torch.linalg.det(a), torch.linalg.slogdet(b)[1], torch.logdet(a @ a.mT + 1), torch.linalg.det(copied)

    return f, [(t(5, 5, dtype=torch.float64, grad=True), t(2, 4, 4, dtype=torch.float64, grad=True))]


@program
def decompositions_training():
    def f(a):
        values, vectors = torch.linalg.eigh(a @ a.mT)
        u, s, v = torch.linalg.svd(a, full_matrices=False)
        return values, vectors * 2, u @ v, s, torch.linalg.svdvals(a), torch.linalg.qr(a)[1]

    return f, [(t(5, 4, dtype=torch.float64),), (t(2, 3, 3, dtype=torch.float64, grad=True),)]


@program
def searched_nan():
    nan = float("nan")
    edges, values = torch.tensor([1, 2, 3, nan, nan]), torch.tensor([0, 1, 2.5, 3, 4, nan])
    return lambda s, v: (torch.searchsorted(s, v), torch.bucketize(v, s, right=True)), [(edges, values)]


@program
def nothing():
    return lambda a: a, [(t(3),)]


@program
def sparse():
    return lambda a, b: torch.sparse.mm(a, b), [lambda: (torch.eye(3).to_sparse(), t(3, 2))]


@program
def meta_device():
    return lambda a: (a * 2).sum(0), [lambda: (torch.empty(3, 4, device="meta"),)]


@program
def two_tensors():
    from torch.testing._internal.two_tensor import TwoTensor

    return lambda a: ((a * 2).sin().sum(),), [lambda: (TwoTensor(t(4), t(4, seed=1)),)]


@program
def batch_of_views():
    def f(x):
        parts = x.chunk(4, 1)
        return [p.contiguous() for p in parts], torch.stack(parts), x.unfold(1, 2, 2), x.diagonal()

    return f, [(t(4, 8, grad=True),), (t(6, 8),)]


@program
def inplace_on_result_of_view():
    def f(x):
        y = x * 1
        z = y.view(-1)
        z[::2] = 0
        y.t().add_(1)
        return y, z

    return f, [(t(4, 6, grad=True),)]


@program
def resized_and_set():
    def f(x):
        y = torch.empty(0)
        y.resize_(3).fill_(2.0)
        return x + y

    return f, [(t(3),)]


@program
def deep_nest():
    def f(tree):
        return {k: [v.sin() for v in vs] for k, vs in tree.items()}

    return f, [lambda: ({"a": [t(3), t(4)], "b": [t(2, 2)]},)]


@program
def losses():
    def f(x, y):
        return (F.mse_loss(x, y) + F.l1_loss(x, y) + F.smooth_l1_loss(x, y) + F.kl_div(x.log_softmax(-1), y.softmax(-1))
                + F.binary_cross_entropy_with_logits(x, y.sigmoid()) + F.huber_loss(x, y) + F.cosine_similarity(x, y).sum())

    return f, [(t(4, 6, grad=True), t(4, 6, seed=1))]


@program
def pooling_and_resizing():
    def f(x):
        return F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 1, 1), F.interpolate(x, scale_factor=2, mode="bilinear"), F.pad(
            x, (1, 1, 0, 2), mode="reflect"), F.adaptive_max_pool2d(x, 3)

    return f, [(t(2, 3, 8, 8, grad=True),)]


@program
def scatter_and_gather():
    def f(x, i):
        return x.gather(1, i), x.scatter_add(1, i, x), x.index_select(0, i[0]), x.masked_fill(x > 0, 0.0), x.cumsum(0)

    return f, [(t(3, 3, grad=True), ints(3, 3, high=3))]


@program
def optimiser():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    adam = torch.optim.AdamW(model.parameters(), lr=0.1)

    def f(x):
        adam.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        adam.step()
        return loss.detach(), model.weight.detach().clone()

    return f, [(t(4, 3),), (t(4, 3, seed=2),)]
