#!/usr/bin/env python3
"""PyTorch executes the forward and backward that `partita aot` prints, and gets eager's outputs and gradients.

  executes_printed_graphs.py PARTITA SOURCE_DIR      exit 0 same numbers, 1 not, 77 PyTorch is not installed
"""
import json, os, re, subprocess, sys, tempfile

try:
    import torch
    from safetensors.torch import load_file
except ImportError:
    print("skipped: PyTorch or safetensors is not installed")
    sys.exit(77)

torch.set_num_threads(1)
RTOL, ATOL = 1e-4, 1e-5


def function(path):
    text = re.sub(r"^class [^\s(]+\(", "class Graph(", open(path).read(), count=1, flags=re.M)
    names = dict(torch=torch, device=torch.device, inf=float("inf"), nan=float("nan"))
    exec(text, names)
    return names["Graph"]().forward


def check(partita, folder, work):
    subprocess.run([partita, "aot", f"{folder}/program.pt2", "-o", work], check=True, stdout=subprocess.DEVNULL)
    meta = json.load(open(f"{work}/metadata.json"))
    io = load_file(f"{folder}/io.safetensors")
    program = torch.export.load(f"{folder}/program.pt2")
    weights = {**program.state_dict, **program.constants}
    values, users = [], iter(sorted((k for k in io if k.startswith("input.")), key=lambda k: int(k[6:])))
    for given in meta["inputs"]:
        values.append(io[next(users)] if given["role"] == "user" else weights[given["name"]].detach())
    with torch.no_grad():
        results = function(f"{work}/forward.py")(*values)
        outputs, saved = results[: meta["num_fwd_outputs"]], results[meta["num_fwd_outputs"]:]
        written = sum(m["mutation_type"] == "MUTATED_OUT_GRAPH" for m in meta["mutations"])
        user = outputs[written:]
        tangents = [torch.ones_like(user[i]) if user[i].dim() == 0 else torch.zeros_like(user[i])
                    for i in (k - written for k in meta["tangent_of"]) if i >= 0]
        symbols = meta["num_symints_saved_for_bw"]
        gradients = function(f"{work}/backward.py")(*saved[len(saved) - symbols:], *saved[: len(saved) - symbols], *tangents)
    expected = {f"output.{i}": o for i, o in enumerate(user)}
    total = {}  # a tied weight is several inputs, and each name gets the whole gradient
    for given, value, gradient in zip(meta["inputs"], values, gradients):
        if gradient is not None and given["role"] == "parameter":
            total[value.data_ptr()] = total.get(value.data_ptr(), 0) + gradient
    names = {name: w for name, w in weights.items() if isinstance(w, torch.Tensor) and w.data_ptr() in total}
    expected |= {f"grad.{name}": total[w.data_ptr()] for name, w in names.items() if f"grad.{name}" in io}
    missing = [k for k in io if k.startswith("grad.") and k not in expected]
    if missing:
        raise SystemExit(f"{folder}: no gradient for {missing}")
    worst = 0.0
    for key, value in expected.items():
        torch.testing.assert_close(value, io[key], rtol=RTOL, atol=ATOL, msg=lambda m: f"{folder} {key}: {m}")
        worst = max(worst, (value.double() - io[key].double()).abs().max().item())
    print(f"{folder}: {len(expected)} values, worst {worst:.2e}")


def main():
    partita, source = sys.argv[1:3]
    corpus = os.environ.get("PARTITA_CORPUS", f"{source}/../shared/corpus")
    folders = [f"{source}/resources/samples/mlp"]
    folders += [f for f in (f"{corpus}/models/{m}" for m in ("mlp", "gpt2", "resnet")) if os.path.exists(f)]
    for folder in folders:
        with tempfile.TemporaryDirectory() as work:
            check(partita, folder, work)


main()
