"""Plants faults in inductor and sees what locate says.  Part of try_locate.py."""

from __future__ import annotations

import functools
import json

import torch

import try_locate as T

# method of CppOverrides / CppVecOverrides -> operators of a graph that may be named
METHODS = {
    "tanh": ("tanh",), "exp": ("exp", "sigmoid", "expm1"), "sigmoid": ("sigmoid",), "rsqrt": ("rsqrt",), "erf": ("erf",),
    "relu": ("relu",), "log": ("log",), "sqrt": ("sqrt",), "neg": ("neg",), "abs": ("abs",), "sin": ("sin",),
    "cos": ("cos",), "expm1": ("expm1",), "log1p": ("log1p",), "truediv": ("div", "mean", "var_mean", "reciprocal"),
    "sub": ("sub", "var_mean", "rsub"), "mul": ("mul", "pow", "square", "var_mean"), "maximum": ("maximum", "clamp_min"),
    "minimum": ("minimum", "clamp_max"), "where": ("where", "constant_pad_nd", "slice_scatter"), "floor": ("floor",),
    "add": ("add",),
}
ACTIVE = [0]  # how often a broken operator was generated
FLOATS = (torch.float32, torch.bfloat16, torch.float16, None)


def is_float(*xs) -> bool:
    return any(getattr(x, "dtype", None) in FLOATS[:3] for x in xs)


def fused() -> bool:
    from torch._inductor.virtualized import V
    node = getattr(V.kernel, "current_node", None)
    origins = getattr(getattr(node, "node", None), "origins", ())
    return len([o for o in origins if o.op == "call_function"]) > 1


def in_tail() -> bool:
    from torch._inductor.virtualized import V
    return bool(getattr(V.kernel, "tail_size", None))


def broken(text: str, kind: str, vec: bool, factor: float, x) -> str:
    V = f"std::decay_t<decltype({text})>"
    if kind == "exception":
        raise RuntimeError(f"planted at {len(text)}")
    if kind == "crash":
        return f"([&]() {{ std::abort(); return {text}; }}())"
    if kind == "nan":
        if vec:
            return f"{V}::blendv({text}, {V}(std::numeric_limits<float>::quiet_NaN()), {V}({x}) > {V}(0.5f))"
        return f"(({x}) > 0.5f ? std::numeric_limits<float>::quiet_NaN() : ({text}))"
    return f"({text})*{V}({factor}f)" if vec else f"({text})*static_cast<float>({factor})"


def plant_method(method: str, kind: str, factor: float) -> None:
    """Breaks one method of the C++ code generator."""
    from torch._inductor.codegen import cpp

    def wrap(original, vec):
        @functools.wraps(original)
        def op(*args, **kwargs):
            text = original(*args, **kwargs)
            wrong = is_float(*args) and (kind != "tail" or in_tail()) and (kind != "fused" or fused())
            ACTIVE[0] += wrong
            return broken(str(text), kind, vec, factor, args[0]) if wrong else text
        return staticmethod(op)
    for cls, vec in ((cpp.CppOverrides, False), (cpp.CppVecOverrides, True)):
        if method in cls.__dict__:
            setattr(cls, method, wrap(getattr(cls, method), vec))


def plant_lowering(name: str, kind: str) -> None:
    """Breaks the dtype or the strides that a lowering gives."""
    from torch._inductor import ir, lowering
    exact = ir.ExternKernel.require_exact_strides
    order = ir.ExternKernel.require_stride_order
    if kind == "stride":
        ir.ExternKernel.require_exact_strides = classmethod(lambda cls, x, *a, **k: x)
        ir.ExternKernel.require_stride_order = classmethod(lambda cls, x, *a, **k: x)
    for target in [t for t in lowering.lowerings if str(t).startswith(f"aten.{name}.")]:
        def wrapped(*args, original=lowering.lowerings[target], **kwargs):
            out = original(*args, **kwargs)
            if kind == "dtype":
                return lowering.to_dtype(out, torch.float64 if out.get_dtype() == torch.float32 else torch.float32)
            n = len(out.get_size())
            return order(out, list(range(n))) if n > 1 else out
        lowering.lowerings[target] = wrapped


def plant_reduction(kind: str) -> None:
    """A vectorised sum that loses a little of each addend."""
    from torch._inductor.codegen import cpp
    original = cpp.CppVecKernel.reduction_combine_vec

    def combine(self, reduction_type, var, next_value, *args, **kwargs):
        if reduction_type == "sum" and (kind != "tail" or self.tail_size):
            ACTIVE[0] += 1
            next_value = f"(({next_value})*std::decay_t<decltype({next_value})>(1.05f))"
        return original(self, reduction_type, var, next_value, *args, **kwargs)
    cpp.CppVecKernel.reduction_combine_vec = combine


def plant_extern(name: str) -> None:
    """A wrong matrix product of the library that the wrapper calls."""
    from torch._inductor import select_algorithm
    kernels = select_algorithm.extern_kernels
    original = getattr(kernels, name)

    def wrong(*args, out=None, **kwargs):
        result = original(*args, out=out, **kwargs) if out is not None else original(*args, **kwargs)
        result.view(-1)[:3].mul_(1.2) if result.is_contiguous() else result.mul_(1.02)
        return result
    setattr(kernels, name, wrong)


def plant(op: str, kind: str, factor: float) -> None:
    if kind in ("dtype", "stride"):
        plant_lowering(op, kind)
    elif kind == "extern":
        plant_extern(op)
    elif op == "sum":
        plant_reduction(kind)
    else:
        plant_method(op, kind, factor)


def names_of(op: str) -> tuple:
    return METHODS.get(op, (op,))


def right(node: dict, op: str) -> bool:
    return any(f".{n}." in node["op"] or node["op"].endswith(f".{n}") or f"{n}." in node["op"].split("aten.")[-1][: len(n) + 1]
               for n in names_of(op) + (("sum", "mean", "var_mean") if op == "sum" else ()))


def small(op: str, dtype, stride_case=False):
    """A little network with one use of op among others, in odd sizes."""
    from torch.fx.experimental.proxy_tensor import make_fx
    f = {"truediv": lambda x: x / 1.7, "sub": lambda x: x - 0.3, "mul": lambda x: x * 1.3, "maximum": lambda x: x.clamp_min(0.1),
         "minimum": lambda x: x.clamp_max(0.2), "where": lambda x: torch.where(x > 0, x, 2.5), "add": lambda x: x + 0.7,
         "rsqrt": lambda x: torch.rsqrt(x.abs() + 0.5), "log": lambda x: torch.log(x.abs() + 0.5),
         "sqrt": lambda x: torch.sqrt(x.abs() + 0.1), "log1p": lambda x: torch.log1p(x.abs()),
         "sum": lambda x: x + x.sum(1, keepdim=True), "mm": lambda x: x, "addmm": lambda x: x}.get(op)
    f = f or getattr(torch, op)

    def net(a, b, c):
        h = torch.mm(a, b) if op != "addmm" else torch.addmm(c, a, b)
        g = (f(h * 0.3 + c) if not stride_case else h * 0.3 + c) + 0.25
        y = torch.mm(g, b.t()) - a
        if stride_case:
            return (f(y), y.amax(1))
        return (y.amax(1), g, torch.special.expit(y) if op != "sigmoid" else y.atan())
    torch.manual_seed(0)
    ins = [torch.randn(37, 29), torch.randn(29, 53) * 0.3, torch.randn(53)]
    ins = [x.to(dtype) for x in ins]
    return make_fx(net)(*ins), ins


def cases() -> list[dict]:
    """60 faults: operator, kind, graph, type."""
    ops = ["tanh", "exp", "sigmoid", "rsqrt", "erf", "relu", "log", "sqrt", "neg", "abs", "sin", "cos", "expm1",
           "log1p", "truediv", "sub", "mul", "maximum", "minimum", "where", "sum"]
    out = []
    for i, op in enumerate(ops):
        for j, kind in enumerate(("value", "fused" if op != "sum" else "tail")):
            out.append({"op": op, "kind": kind, "graph": "small", "bf16": (i + j) % 2 == 1, "factor": 1.05})
    for op in ("tanh", "log", "exp", "sin"):
        out.append({"op": op, "kind": "tail", "graph": "small", "bf16": op == "exp", "factor": 1.05})
    for op, b in (("tanh", False), ("rsqrt", True), ("exp", False)):
        out.append({"op": op, "kind": "nan", "graph": "small", "bf16": b, "factor": 1})
    for op, b in (("tanh", False), ("sigmoid", True)):
        out.append({"op": op, "kind": "dtype", "graph": "small", "bf16": b, "factor": 1})
    for op, b in (("tanh", False), ("exp", True)):
        out.append({"op": op, "kind": "stride", "graph": "stride", "bf16": b, "factor": 1})
    for op, b in (("mm", False), ("addmm", True)):
        out.append({"op": op, "kind": "extern", "graph": "small", "bf16": b, "factor": 1})
    corpus = [("erf", "models/mlp/graphs/inductor_decomp/forward.py"), ("rsqrt", "models/mlp/graphs/inductor_decomp/forward.py"),
              ("exp", "models/mlp/graphs/inductor_decomp/backward.py"), ("tanh", "models/gpt2/graphs/inductor_decomp/forward.py"),
              ("sigmoid", "models/llama/graphs/inductor_decomp/forward.py"), ("relu", "models/dlrm/graphs/inductor_decomp/forward.py"),
              ("rsqrt", "models/t5/graphs/inductor_decomp/forward.py"), ("erf", "models/bert/graphs/inductor_decomp/forward.py"),
              ("erf", "models/vit/graphs/inductor_decomp/forward.py"), ("rsqrt", "models/mamba/graphs/inductor_decomp/forward.py")]
    for k, (op, path) in enumerate(corpus):
        out.append({"op": op, "kind": "value" if k % 3 else "fused", "graph": path, "bf16": k % 2 == 1, "factor": 1.05})
    return out


def graph_of(case):
    if case["graph"] in ("small", "stride"):
        return small(case["op"], torch.bfloat16 if case["bf16"] else torch.float32, case["graph"] == "stride")
    return T.load(f"{T.CORPUS}/{case['graph']}", case["bf16"])


def main(args) -> None:
    log = open(args.log.replace("clean", "planted"), "a")
    score = {"kernel": 0, "node": 0, "surely_wrong": 0, "found": 0, "all": 0}
    for number, case in enumerate(cases()):
        label = f"{number} {case['op']} {case['kind']} {'bf16' if case['bf16'] else 'f32'} {case['graph']}"
        if args.part not in label or number >= args.limit:
            continue

        def work(progress):
            from locating import locate
            m, i = graph_of(case)
            plant(case["op"], case["kind"], case["factor"])
            r = locate.locate(m, i, is_inference="backward" not in case["graph"] and "forward" not in case["graph"],
                              options={}, progress=progress)
            r["active"] = ACTIVE[0]
            return r
        r = T.in_child(work, args.seconds)
        k, n = r.get("kernel") or {}, r.get("node") or {}
        right_kernel = any(right(x, case["op"]) for x in k.get("nodes", []))
        right_node = bool(n) and right(n, case["op"])
        accused = r["verdict"] not in ("clean", "unsure", "killed", "harness", "unsupported")
        surely_wrong = accused and bool(r.get("sure")) and not right_node
        if r.get("active") == 0 and case["kind"] in ("value", "fused", "tail", "nan") and not accused:
            print(label, "| NOT PLANTED: the operator was not generated", flush=True)
            continue
        for name, value in (("all", True), ("found", accused), ("kernel", right_kernel), ("node", right_node),
                            ("surely_wrong", surely_wrong)):
            score[name] += bool(value)
        print(label, "|", "K" if right_kernel else "-", "N" if right_node else "-", "!!" if surely_wrong else "",
              n.get("op"), T.short(r), flush=True)
        log.write(json.dumps({"case": case, "report": r}, default=str) + "\n")
        log.flush()
    print(score)
