#!/usr/bin/env python3
"""PyTorch executes the graphs that `partita export` prints and those that aot_export_module made of the same functions:
the same numbers.

  exports_compute_alike.py PARTITA SOURCE_DIR      exit 0 same numbers, 1 not, 77 PyTorch is not installed
"""
import json
import os
import re
import subprocess
import sys

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed")
    sys.exit(77)

PARTITA, SOURCE = sys.argv[1:3]
FOLDER = f"{SOURCE}/tests/cli/export"


def function(code):
    """The forward of a class or a bare function. Pytrees of joint graphs are given flat."""
    code = re.sub(r"^class [^\s(]+\(", "class Graph(", code.strip("\n"), count=1, flags=re.M)
    code = re.sub(r"fx_pytree\.tree_flatten_spec\(\[primals, tangents\], self\._in_spec\)", "*primals, *tangents", code)
    code = re.sub(r"pytree\.tree_unflatten\((.*), self\._out_spec\)", r"\1", code)
    names = dict(torch=torch, device=torch.device, inf=float("inf"), nan=float("nan"))
    exec(code, names)
    forward = names["Graph"].forward if "Graph" in names else names["forward"]
    return lambda *values: forward(None, *values)


def values_of(code):
    """Random values for the annotated inputs; symbolic sizes are 2, 3, ..."""
    torch.manual_seed(1)
    sizes = {}
    head = code[: code.index("tree_flatten_spec")] if "tree_flatten_spec" in code else re.search(r"def forward.*:\n", code)[0]
    out = []
    for name, shape in re.findall(r'(\w+): "f32\[([^\]]*)\]', head):
        shape = [int(d) if d.isdigit() else sizes.setdefault(d, len(sizes) + 2) for d in shape.split(", ") if d]
        out.append((name, torch.randn(shape)))
    return out


def main():
    worst = 0.0
    cases = [case for case in json.load(open(f"{FOLDER}/cases.json"))["cases"] if "code" in case]
    for case in cases:
        name = f"{FOLDER}/{case['name']}"
        path = f"{name}.pt2" if os.path.exists(f"{name}.pt2") else f"{name}.py"
        words = [PARTITA, "export", path, *case["words"][1:]]
        if os.path.exists(f"{name}.safetensors"):
            words += ["--inputs", f"{name}.safetensors"]
        code = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        values = values_of(code)
        given = [v for _, v in values]
        if "--joint-simple" in words:
            given = [[v for n, v in values if n.startswith("primals")], [v for n, v in values if n.startswith("tangents")]]
        ours, theirs = (function(text)(*given) for text in (code, case["code"]))
        assert len(ours) == len(theirs), case["name"]
        for a, b in zip(ours, theirs):
            assert (a is None) == (b is None), case["name"]
            if a is not None:
                torch.testing.assert_close(a, b)
                worst = max(worst, (a.double() - b.double()).abs().max().item())
    print(f"{len(cases)} graphs, worst difference {worst:.2e}")


main()
