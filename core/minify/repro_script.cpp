#include "core/minify/repro_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace partita::minify {
namespace {

constexpr const char* head = R"py("""A graph that fails, small enough to read. Runs it in PyTorch, eagerly and compiled.

  python repro.py                            torch.compile with inductor
  python repro.py --backend aot_eager        another registered backend
  python repro.py --backend mine.py:compile  a function (gm, example_inputs) of a file
"""
import argparse, copy, importlib.util, json, os, struct, sys

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="inductor")
    options = parser.parse_args()
    module, inputs = read_case()
    with torch.no_grad():
        expected = module(*copies(inputs))
        try:
            wide_module, wide_inputs = cast_to_fp64(torch.fx.symbolic_trace(copy.deepcopy(module)), copies(inputs))
            exact = wide_module(*wide_inputs)
        except Exception as reason:  # an operator without float64: the plain tolerance decides
            print(f"no run in float64: {reason}", file=sys.stderr)
            exact = None
        try:
            found = torch.compile(module, backend=find_backend(options.backend))(*copies(inputs))
        except Exception as reason:
            print(f"FAILS: {type(reason).__name__}: {reason}")
            return 1
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

}  // namespace

std::string repro_script(const std::string& graph, const std::vector<std::size_t>& numbers, double tolerance) {
  return fmt::format("{}{}\nTOLERANCE = {}\nNUMBERS = [{}]  # inputs that are numbers, not tensors\n{}", head, graph,
                     tolerance, fmt::join(numbers, ", "), tail);
}

}  // namespace partita::minify
