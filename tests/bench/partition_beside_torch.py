#!/usr/bin/env python3
"""Our min-cut partition and PyTorch's of the same joint graphs, in turn: milliseconds, the best of so many.

  partition_beside_torch.py PARTITA CORPUS [TRIES]

PyTorch's gets a fresh trace each time, since it changes the graph, and its clock runs for the partition alone, as ours.
"""
import copy, json, os, subprocess, sys, tempfile, time

import torch
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._subclasses import FakeTensorMode
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from joint_graphs import read

partita, corpus = sys.argv[1:3]
tries = int(sys.argv[3]) if len(sys.argv) > 3 else 5


def ours(path):
    with tempfile.TemporaryDirectory() as out:
        text = subprocess.run([partita, "aot", path, "-o", out, "--json"], capture_output=True, check=True, text=True).stdout
    document = json.loads(text)
    saved = sum(v["bytes"] for v in document["saved"])
    return next(s["ms"] for s in document["stages"] if s["stage"] == "partition"), len(document["saved"]), saved


def theirs(module, inputs, forward_outputs):
    module = copy.deepcopy(module)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        FakeTensorProp(module, mode).propagate(*inputs)
    start = time.perf_counter()
    forward, _ = min_cut_rematerialization_partition(module, inputs, num_fwd_outputs=forward_outputs)
    ms = 1e3 * (time.perf_counter() - start)
    outputs = next(n for n in forward.graph.nodes if n.op == "output").args[0]
    values = [n.meta["val"] for n in outputs[forward_outputs:]]
    return ms, len(values), sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor))


for name in ("gpt12", "gpt48", "swin30"):
    path = f"{corpus}/big/{name}/joint.py"
    sizes = json.load(open(f"{corpus}/big/sizes.json"))[name]
    module, inputs = read(path)
    runs = [(ours(path), theirs(module, inputs, sizes["min_cut"]["num_fwd_outputs"])) for _ in range(tries)]
    mine, other = (min(run[i] for run in runs) for i in (0, 1))
    print(f"{name}: {len(module.graph.nodes)} nodes; ours {mine[0]:.1f} ms, {mine[1]} saved, {mine[2]} bytes; "
          f"PyTorch {other[0]:.1f} ms, {other[1]} saved, {other[2]} bytes", flush=True)
