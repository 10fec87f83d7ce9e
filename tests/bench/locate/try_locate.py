"""Measures locate on the corpus: no alarms without a fault, right answers with planted ones.

A test tool, not part of the package: it builds graphs from the corpus's FX
text.  Usage: try_locate.py clean|planted|other|stages [name part] [--bf16] [--limit N]
"""

from __future__ import annotations

import ast
import glob
import json
import operator
import os
import re
import select
import signal
import struct
import sys
import tempfile
import time
import zlib

import torch
from torch import fx

SOURCE = os.path.abspath(f"{__file__}/../../../..")
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), f"{SOURCE}/codegen/torch/worker"]
CORPUS = os.environ.get("PARTITA_CORPUS", f"{SOURCE}/../shared/corpus")
DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16,
          "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8,
          "b8": torch.bool, "c64": torch.complex64, "c128": torch.complex128}
OPS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
       ast.Div: operator.truediv, ast.Pow: operator.pow, ast.Mod: operator.mod}
COMPARE = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
           ast.Eq: operator.eq, ast.NotEq: operator.ne}


class Unsupported(Exception):
    """A graph this small reader does not read."""


class Reader:
    """Builds a GraphModule from the text of forward()."""

    def __init__(self, text: str, constants: dict | None = None):
        text = re.sub(r"class <lambda>", "class GraphModule", text)
        text = "\n".join(ln for ln in text.splitlines() if not re.match(r"^\s*\w+: \"[^\"]*\"; ", ln))
        tree = ast.parse(text)
        cls = next(n for n in tree.body if isinstance(n, ast.ClassDef))
        if any(isinstance(n, ast.ClassDef) for n in cls.body):
            raise Unsupported("sub graphs")
        self.fn = next(n for n in cls.body if isinstance(n, ast.FunctionDef))
        self.space = {"torch": torch, "device": torch.device, "inf": float("inf"), "nan": float("nan")}
        self.graph, self.env, self.root = fx.Graph(), {}, torch.nn.Module()
        self.constants = constants or {}
        self.notes: list[tuple[str, str]] = []

    def module(self) -> fx.GraphModule:
        for a in self.fn.args.args[1:]:
            note = a.annotation.value if isinstance(a.annotation, ast.Constant) else ""
            node = self.graph.placeholder(a.arg)
            self.env[a.arg] = node
            self.notes.append((a.arg, note))
            self._sizes(node, note)
        for st in self.fn.body:
            self._statement(st)
        return fx.GraphModule(self.root, self.graph)

    def _sizes(self, node, note):
        m = re.match(r"Sym\((\w+)\)$", note)
        if m:
            node.meta["symbol"] = m.group(1)
        m = re.match(r"\w+\[([^\]]*)\]", note)
        if m:
            node.meta["dims"] = [int(d) if d.strip().isdigit() else d.strip() for d in m.group(1).split(",") if d.strip()]

    def _statement(self, st):
        if isinstance(st, ast.Return):
            self.graph.output(self._value(st.value))
        elif isinstance(st, (ast.AnnAssign, ast.Assign)):
            target = st.target if isinstance(st, ast.AnnAssign) else st.targets[0]
            if isinstance(st.value, ast.Constant) and st.value.value is None:
                return
            if not isinstance(target, ast.Name):
                raise Unsupported(ast.unparse(st)[:80])
            value = self._value(st.value)
            if isinstance(value, fx.Node):
                value.name = target.id if value.name != target.id else value.name
            self.env[target.id] = value
        elif isinstance(st, ast.Expr):
            self._value(st.value)

    def _value(self, e):
        if isinstance(e, ast.Name):
            return self.env[e.id] if e.id in self.env else eval(e.id, self.space)
        if isinstance(e, (ast.Tuple, ast.List)):
            items = [self._value(x) for x in e.elts]
            return tuple(items) if isinstance(e, ast.Tuple) else items
        if isinstance(e, ast.Subscript):
            return self.graph.call_function(operator.getitem, (self._value(e.value), self._value(e.slice)))
        if isinstance(e, ast.BinOp):
            a, b = self._value(e.left), self._value(e.right)
            f = OPS[type(e.op)]
            return self.graph.call_function(f, (a, b)) if isinstance(a, fx.Node) or isinstance(b, fx.Node) else f(a, b)
        if isinstance(e, ast.Compare):
            a, b = self._value(e.left), self._value(e.comparators[0])
            return self.graph.call_function(COMPARE[type(e.ops[0])], (a, b))
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            a = self._value(e.operand)
            return self.graph.call_function(operator.neg, (a,)) if isinstance(a, fx.Node) else -a
        if isinstance(e, ast.Call):
            return self._call(e)
        if isinstance(e, ast.Attribute) and ast.unparse(e).startswith("self."):
            return self._attribute(e.attr)
        return eval(compile(ast.Expression(e), "<c>", "eval"), self.space)

    def _attribute(self, name):
        if name not in self.constants:
            raise Unsupported(f"constant {name}")
        self.root.register_buffer(name, self.constants[name])
        return self.graph.get_attr(name)

    def _call(self, e):
        name = ast.unparse(e.func)
        if name.startswith(("torch.ops.higher_order", "fx_pytree", "pytree")):
            raise Unsupported(name)
        if name == "device":
            return torch.device("cpu")
        try:
            f = eval(name, self.space)
        except (AttributeError, NameError, SyntaxError) as x:
            raise Unsupported(f"{name}: {x}") from x
        args = tuple(self._value(a) for a in e.args)
        kwargs = {k.arg: self._value(k.value) for k in e.keywords}
        return self.graph.call_function(f, args, kwargs)


def make_input(note: str, seed: int, symbols: dict[str, int]):
    """A random value for an annotation such as f32[64, 32][32, 1]cpu."""
    m = re.match(r"Sym\((.+)\)$", note)
    if m:
        if not re.fullmatch(r"s\d+", m.group(1)):
            if not re.fullmatch(r"[s\d+*/() -]+", m.group(1)):
                raise Unsupported(note)
            for name in re.findall(r"s\d+", note):
                symbols.setdefault(name, 6 + 2 * len(symbols))
            return int(eval(m.group(1), {"__builtins__": {}}, dict(symbols)))
        return symbols.setdefault(m.group(1), 6 + 2 * len(symbols))
    m = re.match(r"(\w+)\[([^\]]*)\](?:\[([^\]]*)\])?", note)
    if not m or m.group(1) not in DTYPES:
        raise Unsupported(note)
    dtype = DTYPES[m.group(1)]
    for name in re.findall(r"s\d+", note):
        symbols.setdefault(name, 6 + 2 * len(symbols))

    def numbers(text):
        return [int(eval(d, {"__builtins__": {}}, dict(symbols))) for d in (text or "").split(",") if d.strip()]
    size = numbers(m.group(2))
    stride = numbers(m.group(3)) if m.group(3) is not None else None
    g = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point or dtype.is_complex:
        v = torch.rand(size, generator=g) + 0.5 if len(size) == 1 else torch.randn(size, generator=g) * 0.7
        v = v.to(dtype)
    else:
        v = torch.randint(0, 2, size, generator=g).to(dtype)
    if stride and len(stride) == len(size) and v.numel() and 0 not in stride:
        v = torch.empty_strided(size, stride, dtype=dtype).copy_(v)
    return v


def safetensors(path: str) -> dict[str, torch.Tensor]:
    """Reads a safetensors file (no pickle)."""
    names = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
             "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
             "BOOL": torch.bool}
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    out = {}
    for key, d in json.loads(data[8:8 + n]).items():
        if key == "__metadata__" or d["dtype"] not in names:
            continue
        a, b = d["data_offsets"]
        raw = bytearray(data[8 + n + a:8 + n + b])
        t = torch.frombuffer(raw, dtype=names[d["dtype"]]) if raw else torch.empty(0, dtype=names[d["dtype"]])
        out[key] = t.reshape(d["shape"]).clone()
    return out


def to_bf16(text: str) -> str:
    return text.replace('"f32[', '"bf16[').replace("torch.float32", "torch.bfloat16")


def load(path: str, bf16: bool):
    """(module, inputs) of one FX text file."""
    text = open(path).read()
    if bf16:
        text = to_bf16(text)
    folder = os.path.dirname(path)
    reader = Reader(text, corpus_constants(folder))
    module = reader.module()
    symbols: dict[str, int] = {}
    known = saved_values(path, bf16) if "backward" in os.path.basename(path) else {}
    inputs = []
    for i, (name, note) in enumerate(reader.notes):
        v = make_input(note, 100 + i, symbols)
        old = known.get(name)
        if isinstance(old, torch.Tensor) and isinstance(v, torch.Tensor) and old.shape == v.shape and old.dtype == v.dtype:
            v = torch.empty_strided(v.shape, v.stride(), dtype=v.dtype).copy_(old)
        inputs.append(v)
    order_offsets(module, inputs)
    return module, inputs


def order_offsets(module: fx.GraphModule, inputs: list) -> None:
    """Makes the offsets of embedding bags ascend from 0, as the operator demands without checking it."""
    holders = [n for n in module.graph.nodes if n.op == "placeholder"]
    for n in module.graph.nodes:
        if n.op == "call_function" and "embedding_bag" in str(n.target) and "backward" not in str(n.target):
            offsets = n.args[2]
            while offsets.op == "call_function":
                offsets = offsets.args[0]
            if offsets in holders:
                value = inputs[holders.index(offsets)]
                value.copy_(value.sort(dim=-1).values)
                value[..., 0] = 0


def corpus_constants(folder: str) -> dict:
    for up in (folder, os.path.dirname(folder), os.path.dirname(os.path.dirname(folder))):
        p = os.path.join(up, "case.json")
        if os.path.exists(p):
            c = json.load(open(p)).get("constants") or {}
            out = {}
            for k, v in (c.items() if isinstance(c, dict) else ()):
                try:
                    out[k.rsplit(".", 1)[-1]] = torch.tensor(v if not isinstance(v, dict) else v.get("values", v.get("value", 0)))
                except Exception:
                    pass
            return out
    return {}


def saved_values(path: str, bf16: bool) -> dict:
    forward = path.replace("backward", "forward")
    if not os.path.exists(forward):
        return {}
    try:
        module, inputs = load(forward, bf16)
        from locating import eager_values
        outs, values, _ = eager_values.run_eager(module, inputs)
        for n, v in zip([n for n in module.graph.nodes if n.op == "placeholder"], inputs):
            values[n.name] = v
        return values
    except Unsupported:
        return {}


def graphs() -> list[str]:
    """The corpus's forward and backward graphs, small ones first."""
    found = glob.glob(f"{CORPUS}/models/*/graphs/inductor_decomp/*ward.py")
    found += glob.glob(f"{CORPUS}/models/*/graphs/*ward.py")
    found += glob.glob(f"{CORPUS}/aot/*/*ward*.py")
    found += glob.glob(f"{CORPUS}/torch_tests/*/graph.py") + glob.glob(f"{CORPUS}/reports/*/*.py")
    found += glob.glob(f"{CORPUS}/big/gpt12/*ward.py")
    return sorted(found, key=os.path.getsize)


def in_child(work, seconds: float):
    """Runs work() in a forked child; gives its result, or what killed it."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        os.setsid()
        try:
            out = work(lambda line: os.write(w, (json.dumps({"p": line}) + "\n").encode()))
        except Unsupported as x:
            out = {"verdict": "unsupported", "reason": str(x)}
        except BaseException as x:
            import traceback
            out = {"verdict": "harness", "reason": f"{type(x).__name__}: {str(x)[:300]}", "trace": traceback.format_exc()[-1500:]}
        os.write(w, (json.dumps({"r": out}, default=str) + "\n").encode())
        os._exit(0)
    os.close(w)
    data, end = b"", time.time() + seconds
    while True:
        ready, _, _ = select.select([r], [], [], max(0.0, end - time.time()))
        if not ready:
            os.killpg(pid, signal.SIGKILL)
            break
        chunk = os.read(r, 1 << 20)
        if not chunk:
            break
        data += chunk
    os.close(r)
    _, status = os.waitpid(pid, 0)
    lines = [json.loads(x) for x in data.decode(errors="replace").splitlines() if x.startswith("{") and x.endswith("}")]
    last = next((x["p"] for x in reversed(lines) if "p" in x), "")
    result = next((x["r"] for x in lines if "r" in x), None)
    if result is None:
        result = {"verdict": "killed", "reason": f"status {status}", "last": last}
    return result


def dynamo_graph(function, inputs) -> fx.GraphModule:
    """The graph that dynamo makes of a call."""
    import torch._dynamo
    found: list[fx.GraphModule] = []

    def keep(module, _):
        found.append(module)
        return module.forward
    torch._dynamo.reset()
    torch.compile(function, backend=keep, fullgraph=True)(*inputs)
    return found[0]


def by_name(module: fx.GraphModule, function, inputs) -> list:
    """The inputs in the order of dynamo's placeholders."""
    import inspect
    given = dict(zip(inspect.signature(function).parameters, inputs))
    return [given[n.target.removeprefix("L_").removesuffix("_")] for n in module.graph.nodes if n.op == "placeholder"]


def plant_kernel(op: str) -> None:
    import plant
    plant.plant(op, "value", 1.05)


def warm():
    """Imports, and one tiny compilation, so that children start fast."""
    torch.set_num_threads(1)
    from locating import locate
    from torch.fx.experimental.proxy_tensor import make_fx
    x = torch.randn(4, 4)
    m = make_fx(lambda a: a.sin() + 1)(x)
    locate.locate(m, [x], is_inference=True, options={}, progress=lambda s: None)


def short(r: dict) -> str:
    k, n = r.get("kernel") or {}, r.get("node") or {}
    t = r.get("times", {})
    tally = r.get("tally", {})
    return (f"{r['verdict']:10} sure={r.get('sure')} {k.get('key', '')} {n.get('node', '')} {r.get('held', '')} "
            f"judged {tally.get('buffers_judged')}/{tally.get('buffers_not_judged')} exc {tally.get('excused_by_rounding')} "
            f"t {t.get('compile')}/{t.get('to_kernel')}/{t.get('total')} {r.get('reason', '')[:200]} {r.get('last', '')}"
            f"{(r.get('exception') or {}).get('message', '')[:160]}")


def clean(args):
    paths = [p for p in graphs() if args.part in p][args.skip: args.limit]
    counts: dict[str, int] = {}
    log = open(args.log, "a")
    for p in paths:
        def work(progress):
            from locating import locate
            m, i = load(p, args.bf16)
            inference = "backward" not in p and "forward" not in p
            return locate.locate(m, i, is_inference=inference, options={}, progress=progress)
        r = in_child(work, args.seconds)
        counts[r["verdict"]] = counts.get(r["verdict"], 0) + 1
        print(p.replace(CORPUS + "/", ""), "bf16" if args.bf16 else "f32", short(r), flush=True)
        log.write(json.dumps({"path": p, "bf16": args.bf16, "report": r}, default=str) + "\n")
        log.flush()
    print(counts)


if __name__ == "__main__":
    import argparse
    ap = argparse.ArgumentParser()
    ap.add_argument("what")
    ap.add_argument("part", nargs="?", default="")
    ap.add_argument("-v", "--verbose", action="store_true")
    ap.add_argument("--bf16", action="store_true")
    ap.add_argument("--skip", type=int, default=0)
    ap.add_argument("--limit", type=int, default=10000)
    ap.add_argument("--seconds", type=float, default=240)
    ap.add_argument("--log", default=f"{tempfile.gettempdir()}/locate_clean.jsonl")
    a = ap.parse_args()
    warm()
    if a.what == "clean":
        clean(a)
    elif a.what == "stages":
        import plant_stage
        sys.exit(1 if plant_stage.main(a) else 0)
    elif a.what == "other":
        import plant_other
        plant_other.main(a)
    else:
        import plant
        plant.main(a)
