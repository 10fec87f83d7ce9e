#!/usr/bin/env python3
"""Runs random programs that write and share memory (tests/fuzz/programs.h) by eager PyTorch and compiled, and compares
outputs, inputs after the run, who shares memory with whom, and gradients.

  programs_in_torch.py PARTITA_FUZZ [--seed S] [--count N] [--train]
      exit 0 same, 1 not, 77 PyTorch is not installed

Operators of sub graphs are run as what they mean: an if, a while, a for. Programs that eager PyTorch refuses (in-place
operators on several views of one call, for example) are counted. Not a difference: elements that rounding of the inputs
moves as far.
"""
import argparse, glob, json, os, re, subprocess, sys, tempfile, warnings

try:
    import torch
    from safetensors import safe_open
except ImportError:
    print("skipped: PyTorch or safetensors is not installed")
    sys.exit(77)

from against_torch import difference, read

torch.set_num_threads(1)
warnings.filterwarnings("ignore")


region_results = []  # the backward of a region takes a tangent of each, zero where nothing reads it


def noted(results):
    region_results.extend(t for t in results if isinstance(t, torch.Tensor))
    return results


def cond(holds, yes, no, operands):
    return noted((yes if holds else no)(*operands))


def while_loop(more, turn, carried, others):
    while more(*carried, *others):
        carried = turn(*carried, *others)
    return noted(carried)


def scan(combine, carry, xs, others):
    carry, rows = list(carry), []
    for row in zip(*xs):
        results = combine(*carry, *row, *others)
        carry = results[:len(carry)]
        rows.append(results[len(carry):])
    return noted((*carry, *(torch.stack(column) for column in zip(*rows))))


def settle(module):
    """Makes the classes in a class, which stand for sub graphs, modules."""
    for name, member in list(vars(module).items()):
        if isinstance(member, type):
            settle(member)
            setattr(module, name, member())


def program(text):
    text = re.sub(r"^class [^\s(]+\(", "class Program(", text, count=1, flags=re.M)
    text = re.sub(r"torch\.ops\.higher_order\.(\w+)", r"run_\1", text)
    names = dict(torch=torch, device=torch.device, inf=float("inf"), nan=float("nan"), run_cond=cond,
                 run_while_loop=while_loop, run_scan=scan)
    exec(text, names)
    settle(names["Program"])
    return names["Program"]()


def metadata(path):
    with safe_open(path, "pt") as f:
        return {k: json.loads(v) for k, v in (f.metadata() or {}).items() if v[:1] in "[{"}


def whole(t):
    length = t.untyped_storage().nbytes() // t.element_size()
    return t.as_strided((length,), (1,), 0)


def shaken(t):
    if not (t.is_floating_point() or t.is_complex()):
        return t
    sign = torch.tensor([1, -1]).repeat(t.numel() // 2 + 1)[:t.numel()].to(t.dtype)
    return t + t * sign * (4 * torch.finfo(t.dtype).eps)


class Inputs:
    """The inputs over their memories. A memory that requires grad is no leaf, so that programs may write it."""

    def __init__(self, tensors, meta, shake):
        self.inputs, self.leaves, self.members, shared = [], {}, {}, meta.get("storages", {})
        bases = {}
        for i in range(len(tensors)):
            key = f"input.{i}"
            if key not in tensors:
                break
            memory, offset = shared.get(key, [key, 0])
            if memory.startswith("input.") and memory != key:
                self.inputs.append(self.inputs[int(memory[6:])])
                continue
            t = tensors[key]
            if memory not in bases:
                values = whole(tensors[memory])
                leaf = shaken(values) if shake else values.clone()
                if key in meta.get("requires_grad", []):
                    self.leaves[memory] = leaf.requires_grad_()
                bases[memory] = leaf.clone()
            self.members.setdefault(memory, []).append((key, t.shape, t.stride(), offset))
            if memory == key and memory not in self.leaves:  # no view, so that detach_ is allowed
                own = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype)
                whole(own).copy_(bases[memory])
                self.inputs.append(own)
                continue
            self.inputs.append(bases[memory].as_strided(t.shape, t.stride(), offset))


def owner(t, outputs, inputs):
    """Of outputs[t]: the first input or earlier output in whose memory it lies, and the offset in it."""
    me = outputs[t]
    for stem, others in (("input", inputs), ("output", outputs[:t])):
        for i, other in enumerate(others):
            if isinstance(other, torch.Tensor) and other.untyped_storage()._cdata == me.untyped_storage()._cdata:
                same = other.dtype == me.dtype
                return [f"{stem}.{i}", me.storage_offset() - other.storage_offset() if same else None]
    return None


def run(text, tensors, meta, train, shake=False):
    """(results by key, owners by output key)"""
    given = Inputs(tensors, meta, shake)
    inputs = given.inputs
    region_results.clear()
    with torch.set_grad_enabled(train):
        outputs = program(text).forward(*inputs)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    results, owners = {}, {}
    for i, t in enumerate(outputs):
        results[f"output.{i}"] = t.detach().clone(memory_format=torch.preserve_format)
        # clone() makes overlapping elements dense.
        if t.stride() != results[f"output.{i}"].stride():
            results[f"output.{i}"] = t.detach().resolve_conj().resolve_neg()
        if t.numel():
            owners[f"output.{i}"] = owner(i, outputs, inputs)
    for i, t in enumerate(inputs):
        results[f"input_after.{i}"] = t.detach()
    if train:
        # Where no tangent is given it is zero, as in the backward of a compiled program.
        seeds = [(t, tensors.get(f"tangent.{i}")) for i, t in enumerate(outputs)]
        seeds += [(t, tensors.get(f"tangent.input.{i}")) for i, t in enumerate(inputs)]
        seeds += [(t, None) for t in region_results]
        seeds = [(t, torch.zeros_like(t) if g is None else g) for t, g in seeds if t.grad_fn]
        leaves = list(given.leaves.values())
        grads = torch.autograd.grad([t for t, _ in seeds], leaves, [g for _, g in seeds], allow_unused=True) \
            if seeds and leaves else [None] * len(leaves)
        for memory, leaf, g in zip(given.leaves, leaves, grads):
            results[f"grad.{memory}"] = torch.zeros_like(leaf) if g is None else g
    return results, owners, given


def total_gradient(memory, given, found):
    """Ours of a whole memory, which is given for it or for its inputs."""
    if f"grad.{memory}" in found and memory.startswith("storage."):
        return found[f"grad.{memory}"]
    total = torch.zeros_like(given.leaves[memory]).detach()
    for key, shape, stride, offset in given.members[memory]:
        if f"grad.{key}" in found:
            # Views of a memory may overlap each other, but no view itself.
            total.as_strided(shape, stride, offset).add_(found[f"grad.{key}"])
    return total


def excused(a, b, c):
    if c is None or c.shape != a.shape or not a.is_floating_point() or b.dtype != a.dtype:
        return False
    a, b, c = a.double(), b.double(), c.double()
    rough = ~(torch.isfinite(a) & torch.isfinite(b) & torch.isfinite(c))
    bound = 1e-5 + 1e-5 * a.abs() + 256 * (c - a).abs()
    fine = ((a - b).abs() <= bound) | (a == b) | (a.isnan() & b.isnan())
    return bool((fine | (rough & ((a.abs() > 1e10) | ~torch.isfinite(a) | ~torch.isfinite(c)))).all())


def check(stem, train):
    """What differs, in words; None when nothing does."""
    text, tensors, meta = open(stem + ".py").read(), read(stem + ".io.safetensors"), metadata(stem + ".io.safetensors")
    found, aliases = read(stem + ".out.safetensors"), metadata(stem + ".out.safetensors").get("alias", {})
    expected, owners, given = run(text, tensors, meta, train)
    moved = None
    for key, a in expected.items():
        if key.startswith("grad."):
            b = total_gradient(key[5:], given, found)
        elif key.startswith("input_after."):
            b = found.get(key, tensors[key.replace("_after", "")])
        else:
            b = found.get(key)
        if b is None:
            return f"{key} is missing"
        what = difference(a, b)
        if not what:
            continue
        if "Tensor-likes" in what or "Mismatched" in what or "Scalars" in what:
            moved = moved or run(text, tensors, meta, train, shake=True)[0]
            if excused(a, b, moved.get(key)):
                continue
        return f"{key}: {what}"
    for key, place in owners.items():
        ours = aliases.get(key)
        if (place and place[0]) != (ours and ours[0]) or (place and place[1] is not None and place[1] != ours[1]):
            return f"{key} lies in {place}, ours in {ours}"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("fuzz")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--train", action="store_true")
    a = p.parse_args()
    kinds, refusals, programs, failed, refused = {}, {}, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--programs", "--write", folder, "--seed", str(a.seed), "--count", str(a.count)]
        subprocess.run([a.fuzz, *flags, *(["--train"] if a.train else [])], stderr=subprocess.DEVNULL, check=False)
        for path in sorted(glob.glob(folder + "/*.out.safetensors"), key=lambda s: int(os.path.basename(s).split(".")[0])):
            stem = path[:-len(".out.safetensors")]
            programs += 1
            try:
                what = check(stem, a.train)
            except Exception as e:  # what PyTorch refuses
                torch._C._set_grad_enabled(True)
                refused += 1
                why = re.sub(r"[0-9]+", "#", f"{type(e).__name__}: {e}".split("\n")[0][:90])
                refusals[why] = refusals.get(why, 0) + 1
                continue
            if not what:
                continue
            failed += 1
            kind = re.sub(r"[0-9.e+-]+", "#", what)[:70]
            kinds[kind] = kinds.get(kind, 0) + 1
            if kinds[kind] <= 2:
                print(f"# seed {os.path.basename(stem)}: {what}\n{open(stem + '.py').read()}")
    for name, table in (("differ", kinds), ("refused by PyTorch", refusals)):
        for kind, n in sorted(table.items(), key=lambda k: -k[1]):
            print(f"{n:6} {name}: {kind}")
    print(f"{programs} programs, {failed} with differences, {refused} that PyTorch refuses")
    sys.exit(1 if failed else 0)


main()
