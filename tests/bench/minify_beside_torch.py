#!/usr/bin/env python3
"""Our minifier and functorch.compile.minifier on the same graphs. Prints one line per graph.

  minify_beside_torch.py BENCH_MINIFY CORPUS        the same cheap oracle: does the graph hold the operator?
  minify_beside_torch.py PARTITA CORPUS compile     a compiler that fails at the operator: ours, theirs inductor (minutes)
"""
import contextlib, io, json, os, subprocess, sys, tempfile, time

import torch
from functorch.compile import minifier

from joint_graphs import read

GRAPHS = [("models/gpt2/graphs/joint.py", "aten.tanh.default"), ("models/swin/graphs/joint.py", "aten.native_layer_norm_backward.default"),
          ("big/gpt12/joint.py", "aten.tanh.default")]
# Not t5: its text has constants, and PyTorch's minifier would need their values.


def holds(gm, inputs, op):
    return any(str(n.target) == op for n in gm.graph.nodes)


def compiling_fails(gm, inputs, op):
    try:
        torch._inductor.compile(gm, inputs)
    except Exception as reason:
        return "planted" in str(reason)
    return False


def plant(op):
    """Inductor without a rule for the operator."""
    import torch._inductor.compile_fx
    import torch._inductor.lowering as lowering

    def raises(*args, **kwargs):
        raise RuntimeError("planted")

    packet, overload = op.rsplit(".", 1)
    target = getattr(getattr(torch.ops.aten, packet.removeprefix("aten.")), overload)
    lowering.lowerings[target] = raises
    torch._inductor.config.force_disable_caches = True
    torch._inductor.config.fallback_random = True


def theirs(path, op, oracle):
    module, inputs = read(path)
    tries = 0

    def fails(gm, inputs):
        nonlocal tries
        tries += 1
        return oracle(gm, inputs, op)

    begun = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        small, _ = minifier(module, inputs, fails)
    calls = sum(n.op == "call_function" for n in small.graph.nodes)
    return time.perf_counter() - begun, tries, calls


def compiling(partita, corpus):
    path, op = GRAPHS[0]
    plant(op)
    with tempfile.TemporaryDirectory() as work:
        command = [partita, "minify", f"{corpus}/{path}", "--check", "crash:cpu", "--plant", f"{op}:crash", "--cut-only",
                   "--json", "-o", f"{work}/out"]
        env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite"}
        begun = time.perf_counter()
        ours = json.loads(subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE).stdout)
        whole = time.perf_counter() - begun
    seconds, tries, calls = theirs(f"{corpus}/{path}", op, compiling_fails)
    print(f"{path}, compiling: ours {whole:.2f} s, {ours['tries']} tries, {ours['calls']['after']} calls left; PyTorch's "
          f"{seconds:.1f} s, {tries} tries, {calls} calls left: {seconds / whole:.0f} times")


def main():
    bench, corpus = sys.argv[1:3]
    torch.set_num_threads(1)
    if sys.argv[3:] == ["compile"]:
        return compiling(bench, corpus)
    for path, op in GRAPHS:
        ours = min((json.loads(subprocess.run([bench, f"{corpus}/{path}", op], check=True, stdout=subprocess.PIPE).stdout)
                    for _ in range(3)), key=lambda r: r["seconds"])
        seconds, tries, calls = theirs(f"{corpus}/{path}", op, holds)
        print(f"{path}: {ours['start_calls']} calls; ours {ours['seconds'] * 1000:.2f} ms, {ours['tries']} tries, "
              f"{ours['nodes_per_second']:.0f} nodes/s, {ours['calls']} calls left; PyTorch's {seconds * 1000:.0f} ms, "
              f"{tries} tries, {calls} calls left: {seconds / ours['seconds']:.0f} times")


main()
