"""Faults that are not one operator's: passes, decompositions, the wrapper, memory, draws.  Part of try_locate.py."""

from __future__ import annotations

import re

import torch

import try_locate as T


def net(a, b, c):
    h = torch.nn.functional.gelu(torch.mm(a, b) + c)
    s = torch.tanh(h).sum(1, keepdim=True)
    y = torch.mm(h * s, b.t())
    z = torch.mm(y, b)
    return torch.sigmoid(y), z - h, h.t()


def inputs():
    torch.manual_seed(0)
    return [torch.randn(37, 29), torch.randn(29, 53) * 0.3, torch.randn(53)]


def edit_wrapper(change) -> None:
    """Changes the generated wrapper's text."""
    from torch._inductor.graph import GraphLowering
    original = GraphLowering.codegen

    def codegen(self, *args, **kwargs):
        out = original(self, *args, **kwargs)
        out[0].value = change(out[0].value)
        return out
    GraphLowering.codegen = codegen


def bad_pass(graph):
    for n in graph.nodes:
        if n.target is torch.ops.aten.mul.Tensor and isinstance(n.args[1], float):
            n.args = (n.args[0], n.args[1] * 1.01)
            return


def wrong_return(text):
    return re.sub(r"return \((buf\d+), ", lambda m: f"return (reinterpret_tensor({m.group(1)}, (37, 29), (29, 1), 0) * 1.5, ", text, count=1)


def overwritten(text):
    """A buffer that is allocated over another of the same size that is still needed."""
    lines = text.splitlines()
    found = [(i, m) for i, line in enumerate(lines)
             if (m := re.match(r"\s+(buf\d+) = empty_strided_cpu\((.*)\)$", line))]
    for i, a in found:
        for j, b in found:
            late = any(re.search(rf"\b{a.group(1)}\b", x) and not x.strip().startswith("del") for x in lines[j + 1:])
            if j > i and a.group(2) == b.group(2) and late:
                lines[j] = lines[j].replace(b.group(0).strip(), f"{b.group(1)} = {a.group(1)}")
                return "\n".join(lines)
    raise T.Unsupported("no such pair of buffers")


def unsteady(text):
    return text.replace("extern_kernels.mm(", "_shaky(", 1).replace(
        "async_compile.wait(globals())", "def _shaky(a, b, out=None):\n    extern_kernels.mm(a, b, out=out)\n"
        "    out.mul_(1 + 0.1 * torch.rand(()))\n\nasync_compile.wait(globals())", 1)


def bad_table():
    from torch._inductor import decomposition
    table = decomposition.decompositions
    original = table[torch.ops.aten.gelu.default]
    table[torch.ops.aten.gelu.default] = lambda x, approximate="none": original(x, approximate=approximate) * 1.02
    decomposition.fast_random_decomps.cache_clear()


def raising(name):
    from torch._inductor import lowering

    def fail(*a, **k):
        raise RuntimeError("planted: cannot lower this")
    for t in [t for t in lowering.lowerings if str(t).startswith(f"aten.{name}.")]:
        lowering.lowerings[t] = fail


CASES = {
    "pass": (lambda: None, lambda: {"post_grad_custom_post_pass": bad_pass}),
    "decomposition": (bad_table, dict),
    "wrapper return": (lambda: edit_wrapper(wrong_return), dict),
    "overwritten": (lambda: edit_wrapper(overwritten), dict),
    "unsteady": (lambda: edit_wrapper(unsteady), dict),
    "lowering raises": (lambda: raising("tanh"), dict),
    "log1p injection": (lambda: None, lambda: {"cpp.inject_log1p_bug_TESTING_ONLY": "accuracy"}),
}


def main(args) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx
    import json
    for name, (plant, options) in CASES.items():
        if args.part not in name:
            continue

        def work(progress):
            from locating import locate
            f = net if "log1p" not in name else (lambda a, b, c: net(a.abs().log1p(), b, c))
            m = make_fx(f)(*inputs())
            plant()
            return locate.locate(m, inputs(), is_inference=True, options=options(), progress=progress,
                                 want_switches="log1p" in name)
        r = T.in_child(work, args.seconds)
        print(name, "|", T.short(r), "stage", r.get("stage"), (r.get("pass") or {}).get("pass"), r.get("notes"), r.get("evidence", [])[:1],
              r.get("trace"), r.get("own_error"), flush=True)
        for row in r.get("switches", []):
            print("   ", row)
        if args.verbose:
            print(json.dumps(r, indent=1, default=str)[:6000])
