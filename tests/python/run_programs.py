"""Runs each program of programs.py in eager and under a backend, and says which are right, split or wrong.

    run_programs.py [NAME ...] [--backend partita] [--json]

Right: results, gradients, written arguments, module state and the random state are eager's. Split: the same, and PyTorch
ran some of it. Exit 1 when a program is wrong or fails.
"""

import argparse
import copy
import json
import pathlib
import sys
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from programs import PROGRAMS  # noqa: E402

TOLERANCES = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float64: 1e-9}


def arguments(call):
    return call() if callable(call) else copy.deepcopy(call)


def tensors(value, path="result"):
    """(path, value) of all that a result holds."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from tensors(item, f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from tensors(item, f"{path}[{i}]")
    else:
        yield path, value


def observe(function, make, calls):
    """All that a program does, as a list of (what, value)."""
    seen = []
    torch.manual_seed(1234)
    for number, call in enumerate(calls):
        args = arguments(call)
        result = function(*args)
        seen += [(f"call {number} {p}", v) for p, v in tensors(result)]
        loss = sum(
            (v.float().abs() if v.is_complex() else v).sum() for _, v in tensors(result)
            if isinstance(v, torch.Tensor) and v.requires_grad)
        if isinstance(loss, torch.Tensor):
            loss.backward()
        for i, (path, arg) in enumerate(tensors(list(args), "argument")):
            if isinstance(arg, torch.Tensor):
                seen.append((f"call {number} {path}", arg))
                seen.append((f"call {number} {path}.grad", arg.grad))
    module = make if isinstance(make, torch.nn.Module) else None
    if module is not None:
        seen += [(name, value) for name, value in module.state_dict().items()]
        seen += [(f"{name}.grad", p.grad) for name, p in module.named_parameters()]
    seen.append(("random state", torch.get_rng_state()))
    return seen


def difference(expected, found):
    """What differs between two values; None when they are equal."""
    if not isinstance(expected, torch.Tensor):
        return None if expected == found and type(expected) is type(found) else f"{found!r}, not {expected!r}"
    if not isinstance(found, torch.Tensor):
        return f"{found!r}, not a tensor"
    if type(expected) is not type(found):
        return f"a {type(found).__name__}, not a {type(expected).__name__}"
    if hasattr(expected, "__tensor_flatten__"):
        inner = ((difference(getattr(expected, a), getattr(found, a))) for a in expected.__tensor_flatten__()[0])
        return next((why for why in inner if why), None)
    for what in ("dtype", "shape", "layout", "requires_grad"):
        if getattr(expected, what) != getattr(found, what):
            return f"{what} {getattr(found, what)}, not {getattr(expected, what)}"
    if expected.layout == torch.strided and expected.stride() != found.stride() and expected.numel() > 1:
        return f"strides {found.stride()}, not {expected.stride()}"
    if expected.is_meta:
        return None
    tolerance = TOLERANCES.get(expected.dtype, 2e-5)
    if not torch.allclose(expected.detach().to_dense(), found.detach().to_dense(), rtol=tolerance, atol=tolerance, equal_nan=True):
        return f"values differ by {(expected.detach() - found.detach()).abs().max()}"
    return None


def try_program(name, backend):
    """("right" | "split" | "wrong" | "failed", why)."""
    import partita

    torch._dynamo.reset()
    make, calls = PROGRAMS[name]()
    expected = observe(make, make, calls)
    make, calls = PROGRAMS[name]()
    partita.stats.reset()
    try:
        torch._dynamo.reset()
        with torch._dynamo.config.patch(**getattr(make, "config", {})):
            found = observe(torch.compile(make, backend=backend), make, calls)
    except Exception as error:  # it is the answer
        return "failed", f"{type(error).__name__}: {str(error).splitlines()[0]}"
    if len(expected) != len(found):
        return "wrong", f"{len(found)} values, not {len(expected)}"
    for (what, a), (_, b) in zip(expected, found):
        if why := difference(a, b):
            return "wrong", f"{what}: {why}"
    done = partita.stats()
    reasons = [" | ".join(k) for k in done["refused"]] + list(done["eager"])
    if done["interpreted"]:
        reasons.append("interpreted for some sizes")
    return ("split", "; ".join(reasons)) if reasons else ("right", f"{done['compiled']} compiled")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*")
    options.add_argument("--backend", default="partita")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    backend = given.backend
    if backend == "partita":
        from partita.backend import partita as backend
    answers = {name: try_program(name, backend) for name in given.names or PROGRAMS}
    if given.json:
        print(json.dumps({name: {"answer": a, "why": why} for name, (a, why) in answers.items()}))
    else:
        for name, (answer, why) in answers.items():
            print(f"{answer:<7}{name:<26}{why}")
        print({kind: sum(a == kind for a, _ in answers.values()) for kind in ("right", "split", "wrong", "failed")})
    return any(a in ("wrong", "failed") for a, _ in answers.values())


if __name__ == "__main__":
    sys.exit(main())
