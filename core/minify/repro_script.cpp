#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/aot/saved_case.h"
#include "core/base/python_text.h"
#include "core/minify/repro.h"

namespace partita::minify {
namespace {

constexpr const char* head = R"py("""A graph that fails, small enough to read. Runs it in PyTorch, eagerly and compiled.

  python repro.py                            the backend that it failed with
  python repro.py --backend aot_eager        another registered backend
  python repro.py --backend mine.py:compile  a function (gm, example_inputs) of a file
"""
import argparse, contextlib, copy, importlib.util, json, os, struct, sys

import torch
from torch import device, inf, nan  # names that the graph's text uses
from torch._dynamo.debug_utils import cast_to_fp64
from torch._dynamo.utils import same

HERE = os.path.dirname(os.path.abspath(__file__))


)py";

constexpr const char* tail = R"py(

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
          "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
          "U16": torch.uint16, "U32": torch.uint32, "U64": torch.uint64, "F8_E4M3": torch.float8_e4m3fn,
          "F8_E5M2": torch.float8_e5m2, "F8_E4M3FNUZ": torch.float8_e4m3fnuz, "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
          "F8_E8M0": torch.float8_e8m0fnu}


def load(path):
    """The tensors of a safetensors file with Partita's conventions for strides and complex numbers."""
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    ours = ("strides", "dtypes", "complex")
    said = {k: json.loads(v) for k, v in header.pop("__metadata__", {}).items() if k in ours}
    tensors = {}
    for key, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype = DTYPES[entry["dtype"]]
        if end > begin:
            t = torch.frombuffer(bytearray(data[8 + size + begin : 8 + size + end]), dtype=dtype)
        else:
            t = torch.empty(0, dtype=dtype)
        t = t.reshape(entry["shape"])
        if key in said.get("complex", []):
            t = torch.view_as_complex(t)
        if key in said.get("strides", {}):
            laid_out = torch.empty_strided(t.shape, said["strides"][key], dtype=t.dtype)
            t = laid_out.copy_(t) if 0 not in said["strides"][key] else expanded(t, said["strides"][key])
        tensors[key] = t.view(getattr(torch, said["dtypes"][key])) if key in said.get("dtypes", {}) else t
    return tensors


def expanded(t, strides):
    """A tensor with strides of 0: those dimensions are one element, seen again and again."""
    kept = t[tuple(slice(0, 1) if s == 0 else slice(None) for s in strides)]
    return torch.empty_strided(kept.shape, strides, dtype=t.dtype).copy_(kept).expand(t.shape)


def read_case():
    tensors = load(os.path.join(HERE, "inputs.safetensors"))
    module = GraphModule()
    for key, t in tensors.items():
        if key.startswith("constant."):
            setattr(module, key[len("constant."):], t)
    inputs = [tensors[f"input.{i}"] for i in range(sum(k.startswith("input.") for k in tensors))]
    return module, [t.item() if i in NUMBERS else t for i, t in enumerate(inputs)]


def find_backend(name):
    path, _, function = name.rpartition(":")
    if not path:
        return name
    spec = importlib.util.spec_from_file_location("backend", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, function)


def copies(inputs):
    return [t.detach().clone(memory_format=torch.preserve_format) if isinstance(t, torch.Tensor) else t for t in inputs]


def is_aten(module):
    """Calls operators and arithmetic on sizes only?"""
    calls = [n for n in torch.fx.symbolic_trace(module).graph.nodes if n.op not in ("placeholder", "get_attr", "output")]
    operators = (torch._ops.OpOverload, torch._ops.HigherOrderOperator)
    return all(isinstance(n.target, operators) or getattr(n.target, "__module__", "") in ("_operator", "math") or
               getattr(n.target, "__name__", "").startswith("sym_") for n in calls)


def fake_inputs(inputs):
    """Fake tensors and integers with the graph's symbols, whose hints are the real sizes."""
    from torch._dynamo.source import ConstantSource
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

    env, symbols = ShapeEnv(), {}
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)

    def bind(name, value):
        source = ConstantSource(name)
        symbol = env.create_symbol(value, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None,
                                   do_not_specialize_zero_one=True)
        symbols[name] = env.create_symintnode(symbol, hint=value, source=source)

    def size(text):
        words = {"__builtins__": {}, "Max": torch.sym_max, "Min": torch.sym_min, "FloorDiv": lambda a, b: a // b}
        return eval(text, words, symbols) if isinstance(text, str) else text

    # First the symbols that stand alone, as an integer or a size; then what is computed from them.
    for given, value in zip(SIZES, inputs):
        pairs = [(given, value)] if isinstance(given, str) else zip(given, getattr(value, "shape", ()))
        for text, number in pairs:
            if isinstance(text, str) and text.isidentifier() and text not in symbols:
                bind(text, int(number))
    fakes = []
    for given, value in zip(SIZES, inputs):
        if not isinstance(value, torch.Tensor):
            fakes.append(size(given) if isinstance(given, str) else value)
        elif all(isinstance(s, int) for s in given):
            fakes.append(mode.from_tensor(value, static_shapes=True))
        else:
            strides, product, number = list(value.stride()), 1, 1
            for d in sorted(range(value.dim()), key=lambda d: (value.stride(d), value.size(d) != 1, -d)):
                if value.stride(d) == number:
                    strides[d], product, number = product, product * size(given[d]), number * value.size(d)
            with mode:
                fakes.append(torch.empty_strided([size(s) for s in given], strides, dtype=value.dtype))
    return mode, fakes


def inductor(module, inputs):
    """As AOTAutograd hands a graph over: traced with inductor's decompositions, symbols and is_inference kept."""
    import torch._dynamo, torch._inductor.lowering
    from torch._dispatch.python import enable_python_dispatcher
    from torch._guards import TracingContext, tracing
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.virtualized import V
    from torch.fx.experimental.proxy_tensor import make_fx

    call = module.forward
    if any(getattr(getattr(n.target, "_schema", None), "is_mutable", False) for n in torch.fx.symbolic_trace(module).graph.nodes):
        call = torch.func.functionalize(call, remove="mutations")
    mode, fakes = fake_inputs(inputs)
    with mode, enable_python_dispatcher():
        traced = make_fx(lambda *args: tuple(None if type(o) in (int, float, bool) else o for o in call(*args)),
                         decomposition_table=select_decomp_table())(*fakes)
    result = next(n for n in traced.graph.nodes if n.op == "output")
    if IS_INFERENCE:
        result.meta["user_visible_output_idxs"] = [i for i, a in enumerate(result.args[0]) if isinstance(a, torch.fx.Node)]
    values = [n.meta["val"] for n in traced.graph.nodes if n.op == "placeholder"]
    with tracing(TracingContext(mode)), V.set_fake_mode(mode):
        return compile_fx_inner(traced, values, is_inference=IS_INFERENCE)(list(inputs))


def compiled(name, module, inputs):
    if name == "inductor" and is_aten(module):
        return inductor(module, inputs)
    dynamic = any(isinstance(s, str) or any(isinstance(d, str) for d in s) for s in SIZES)
    return torch.compile(module, backend=find_backend(name), dynamic=dynamic)(*inputs)


def settings():
    if not SETTINGS:
        return contextlib.nullcontext()
    import torch._inductor.config

    return torch._inductor.config.patch(SETTINGS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default=BACKEND)
    options = parser.parse_args()
    for name in IMPORTS:
        __import__(name)
    module, inputs = read_case()
    with torch.no_grad(), settings():
        expected = module(*copies(inputs))
        try:
            wide_module, wide_inputs = cast_to_fp64(torch.fx.symbolic_trace(copy.deepcopy(module)), copies(inputs))
            exact = wide_module(*wide_inputs)
        except Exception as reason:  # an operator without float64: the plain tolerance decides
            print(f"no run in float64: {reason}", file=sys.stderr)
            exact = None
        try:
            found = compiled(options.backend, module, copies(inputs))
        except Exception as reason:
            print(f"FAILS: {type(reason).__name__}: {reason}")
            return 1
    expected = tuple(expected)
    found = tuple(e if f is None else f for e, f in zip(expected, found, strict=True))  # inductor gives no plain numbers
    if same(expected, found, exact, tol=TOLERANCE, equal_nan=True):
        print("eager and compiled agree")
        return 0
    print("FAILS: eager and compiled differ")
    for i, (a, b) in enumerate(zip(expected, found)):
        if isinstance(a, torch.Tensor) and a.shape == b.shape and a.numel():
            print(f"  output {i}: largest difference {(a.double() - b.double()).abs().max().item():.3g}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
)py";

std::string quoted(const std::string& text) {
  return fmt::format("\"{}\"", inside_quotes(text, '"'));
}

std::string size_text(const SymExpr& size) {
  return size.is_int() ? size.str() : quoted(size.str());
}

/// The sizes of an input; a number that is a symbol is its text.
std::string sizes_text(const Node& placeholder) {
  if (const SymExpr* sym = placeholder.meta.sym(); sym && !sym->is_int()) return size_text(*sym);
  std::vector<std::string> sizes;
  if (const TensorMeta* t = placeholder.meta.tensor())
    for (const SymExpr& size : t->sizes) sizes.push_back(size_text(size));
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

/// A setting's value as Python has it: True, 3, "accuracy".
std::string setting_text(const std::string& value) {
  for (const auto& [ours, python] : {std::pair("true", "True"), std::pair("false", "False"), std::pair("none", "None")})
    if (value == ours || value == python) return python;
  const bool number = !value.empty() && value.find_first_not_of("0123456789.-") == value.npos;
  return number ? value : quoted(value);
}

/// What the graph and the question say: NUMBERS, SIZES, BACKEND...
std::string constants(const Graph& graph, const std::vector<Value>& inputs, const ReproText& text) {
  std::vector<std::string> numbers, sizes, settings, imports;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].get<Tensor>()) numbers.push_back(std::to_string(i));
  for (const Node* node : graph.placeholders()) sizes.push_back(sizes_text(*node));
  for (const auto& [key, value] : text.settings)
    settings.push_back(fmt::format("{}: {}", quoted(key), setting_text(value)));
  for (const std::string& module : text.imports) imports.push_back(quoted(module));
  return fmt::format(
      "TOLERANCE = {}\nNUMBERS = [{}]  # inputs that are numbers, not tensors\n"
      "SIZES = [{}]  # of inputs; texts are symbols\nBACKEND = {}\nSETTINGS = {{{}}}  # of inductor\n"
      "IS_INFERENCE = {}\nIMPORTS = [{}]\n",
      text.tolerance, fmt::join(numbers, ", "), fmt::join(sizes, ", "), quoted(text.backend), fmt::join(settings, ", "),
      text.inference ? "True" : "False", fmt::join(imports, ", "));
}

}  // namespace

std::string repro_script(const Graph& graph, const std::vector<Value>& inputs, const ReproText& text) {
  return fmt::format("{}{}\n{}{}", head, case_text(graph), constants(graph, inputs, text), tail);
}

}  // namespace partita::minify
