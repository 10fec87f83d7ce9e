#!/usr/bin/env python3
"""Where results lie: those that share memory in eager share it when compiled, and writes to one are seen through the
others; autograd tells of writes between a forward and its backward. Graphs that are called without dynamo's guards."""

import sys
import warnings

import torch
from functorch.compile import aot_function

import partita
from partita.backend import compiler
from partita.backend import partita as backend


def two_views(x):
    y = x * 2
    return y[0], y[1:]


def viewed_and_used(x):
    y = x * 2
    return y[1:], y[1:].sum(0), y.t()[1]


def written_view(x):
    y = x * 2
    y.t_()
    return y, y[1:].mul_(3), y


def detached(x):
    y = x * 2
    return y, y, y.detach(), y.detach().t()


def of_argument(x):
    x.add_(1)
    return x.t(), x.as_strided((2, 2), (1, 2), 1), x * 2, x


SHARED = {
    "two_views": two_views,
    "viewed_and_used": viewed_and_used,
    "written_view": written_view,
    "detached": detached,
    "of_argument": of_argument,
    "flattened": lambda x: (y := x * 2, y.view(-1), y.flatten()[3:]),
    "beside_numbers": lambda x: (y := x * 2, None, y.shape[0] * 3, y.t(), x.sum()),
    "conjugated": lambda x: (y := torch.complex(x, x), y.conj(), y.conj().t()),
    "split": lambda x: (x * 2).split(2),
    "unbind": lambda x: (x * 2).unbind(1),
    "expanded": lambda x: (y := x[:, :1] * 2, y.expand(-1, 3)),
    "strided": lambda x: (y := x * 2, y.as_strided((2, 2), (1, 2), 1)),
    "other_dtype": lambda x: (y := x * 2, y.view(torch.int32)),
    "complex_parts": lambda x: (torch.view_as_real(y := torch.complex(x, x)), y.imag, y),
    "eager_between": lambda x: (y := torch.linalg.eigh(x @ x.t())[0] + x[0, 0], y[1:], x * 2, x[1:]),
}


def address(value):
    return value.untyped_storage().data_ptr()


def check_shared(name, function):
    """Raises AssertionError when the results, or what they are after writes, are not eager's."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    compiled = torch.compile(function, backend=backend)
    for n in (4, 4, 6, 6, 8):
        x = torch.randn(n, 4)
        given = x.clone(), x.clone()
        expected, found = (*function(given[0]), given[0]), (*compiled(given[1]), given[1])
        assert [type(a) for a in expected] == [type(b) for b in found], name
        expected, found = ([v for v in values if isinstance(v, torch.Tensor)] for values in (expected, found))
        assert len(expected) == len(found), name
        for i, a in enumerate(expected):
            for j in range(i):
                shares = address(a) == address(expected[j]), address(found[i]) == address(found[j])
                assert shares[0] == shares[1], f"{name}: do results {j} and {i} share memory? {shares}"
        for i, a in enumerate(expected):
            if not a.is_floating_point() or (0 in a.stride() and a.numel() > 1):
                continue
            a.add_(i + 1.5), found[i].add_(i + 1.5)
            for k, (p, q) in enumerate(zip(expected, found)):
                same = p.stride() == q.stride() and torch.allclose(p, q, rtol=1e-4, atol=1e-4, equal_nan=True)
                assert same, f"{name}: {k} after a write to {i}"


def raises_as_eager(function, write):
    """Does a write between the forward and the backward raise as in eager?"""
    said = []
    for run in (function, torch.compile(function, backend=backend)):
        x, w = torch.ones(2, 4, requires_grad=True), torch.ones(5, 4, requires_grad=True)
        for _ in range(2):  # the second call is a prepared one
            y = run(x, w)
        with torch.no_grad():
            write(w, y)
        try:
            y.sum().backward()
            said.append("")
        except RuntimeError as error:
            said.append(str(error)[:60])
    assert said[0] == said[1], said
    return bool(said[0])


def check_writes():
    assert not raises_as_eager(lambda x, w: (x @ w.t()).exp(), lambda w, y: None)
    assert raises_as_eager(lambda x, w: (x @ w.t()).exp(), lambda w, y: y.mul_(2))
    assert raises_as_eager(lambda x, w: x @ w.t(), lambda w, y: w.mul_(2))
    assert raises_as_eager(lambda x, w: (x * w[:2]).sigmoid(), lambda w, y: w.mul_(2))


def check_odd_arguments():
    """PyTorch runs calls that the graph was not compiled for, and says so."""
    function = aot_function(lambda x, y: x * 2 + y, compiler("forward", {}))
    y = torch.ones(3)
    function(y, y)
    partita.stats.reset()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for x in (torch.ones(1), torch.ones(2, 3), torch.ones(3, dtype=torch.float64), torch.ones(6)[::2]):
            found, expected = function(x, y), x * 2 + y
            assert found.dtype == expected.dtype and torch.equal(found, expected), (found, expected)
    assert any(issubclass(w.category, partita.PartitaWarning) for w in told)
    assert partita.stats()["eager_calls"] == 3, partita.stats()  # other strides are compiled for


def check_missing_kernels():
    """What PyTorch has no kernel for raises its error."""
    nn = torch.nn
    for pool in (nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d, nn.AdaptiveAvgPool3d):
        torch._dynamo.reset()
        x = torch.ones(1, 2, *[4] * int(pool.__name__[-2]), dtype=torch.int64)
        try:
            torch.compile(pool(2), backend=backend)(x)
        except NotImplementedError as error:
            assert "not implemented for 'Long'" in str(error), error
        else:
            raise AssertionError(f"{pool.__name__} of integers gave a result")


def check_filled_memory():
    """Memory that nothing was written to is filled in PyTorch's deterministic mode."""
    torch._dynamo.reset()
    torch.use_deterministic_algorithms(True)
    try:
        for made in (torch.compile(lambda x: torch.empty(5) + x, backend=backend)(torch.ones(5)),
                     torch.compile(lambda x: torch.ops.aten.resize(x, [9]), backend=backend)(torch.ones(5))[5:]):
            assert made.isnan().all(), made
    finally:
        torch.use_deterministic_algorithms(False)


FAILED = []
checks = {name: lambda name=name, f=f: check_shared(name, f) for name, f in SHARED.items()}
checks.update(
    writes=check_writes, odd_arguments=check_odd_arguments, missing_kernels=check_missing_kernels,
    filled_memory=check_filled_memory)
for name, check in checks.items():
    try:
        check()
        print(f"{name}: ok", flush=True)
    except Exception as error:  # told at the end
        FAILED.append(f"{name}: {type(error).__name__}: {error}")
print("\n".join(FAILED))
sys.exit(bool(FAILED))
