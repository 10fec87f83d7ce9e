#!/usr/bin/env python3
"""Runs random graphs by PyTorch and the reference interpreter, call by call, on the interpreter's values.

  against_torch.py PARTITA_FUZZ [--seed S] [--count N] [--only NAME]
      exit 0 same numbers, 1 not, 77 PyTorch is not installed

Not counted as a difference: what PyTorch has no CPU kernel for, and values for which PyTorch's own result is as far from
its result in double precision.
"""
import argparse, glob, json, os, re, subprocess, sys, tempfile, warnings

try:
    import torch
    from safetensors import safe_open
except ImportError:
    print("skipped: PyTorch or safetensors is not installed")
    sys.exit(77)

torch.set_num_threads(1)
warnings.filterwarnings("ignore")
NO_KERNEL = re.compile(r"not implemented for|not supported on CPU|not support.* (on|for) CPU|Unsupported dtype|mkldnn")


def laid_out(values, stride):
    length = 1 + sum((d - 1) * s for d, s in zip(values.shape, stride)) if values.numel() else 0
    view = torch.zeros(length, dtype=values.dtype).as_strided(values.shape, stride)
    first = tuple(slice(0, 1) if s == 0 else slice(None) for s in stride)
    view[first].copy_(values[first])
    return view


def read(path):
    with safe_open(path, "pt") as f:
        meta = {k: json.loads(v) for k, v in (f.metadata() or {}).items() if v[:1] in "[{"}
        tensors = {k: f.get_tensor(k) for k in f.keys()}
    for key in meta.get("complex", []):
        tensors[key] = torch.view_as_complex(tensors[key].clone())
    for key, stride in meta.get("strides", {}).items():
        tensors[key] = laid_out(tensors[key], stride)
    return tensors


def numbered(tensors, stem):
    return [tensors[f"{stem}.{i}"] for i in range(len(tensors)) if f"{stem}.{i}" in tensors]


def significant(t):
    return [s for s, n in zip(t.stride(), t.shape) if n > 1] if t.numel() > 1 else []


def values_differ(a, b):
    try:
        torch.testing.assert_close(b, a, equal_nan=True, check_stride=False)
    except AssertionError as e:
        return str(e).split("\n")[2 if "Mismatched" in str(e) else 0]
    return None


def difference(a, b):
    """What differs between PyTorch's tensor and ours; None when nothing does."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{list(a.shape)} expected, {b.dtype}{list(b.shape)} found"
    if significant(a) != significant(b):
        return f"strides {a.stride()} expected, {b.stride()} found"
    return values_differ(a, b)


def widened(value):
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype.is_floating_point else value
    return [widened(v) for v in value] if isinstance(value, (list, tuple)) else value


def steps(text):
    """Names of the inputs, and (name, expression) of each call."""
    header = re.search(r"def forward\(self(.*?)\):", text).group(1)
    calls = re.findall(r'^        (\w+)(?:: "[^"]*")? = (.*?)(?:;  .*)?$', text, flags=re.M)
    return re.findall(r'(\w+): "', header), calls


def check(text, tensors):
    """(operator, what differs) of each call that differs; [None] for each that PyTorch cannot run."""
    inputs, calls = steps(text)
    ours = dict(zip(re.findall(r"\w+", text[text.rindex("return (") + 7:]), numbered(tensors, "output")))
    names = dict(torch=torch, device=torch.device, inf=float("inf"), nan=float("nan"))
    names.update(zip(inputs, numbered(tensors, "input")))
    found = []
    for name, expression in calls:
        call = re.match(r"torch\.ops\.([\w.]+)\(", expression)
        if call:
            operator, run = call.group(1), expression
        try:
            with torch.no_grad():
                names[name] = eval(expression, names)
        except Exception as e:
            what = str(e).split("\n")[0]
            found.append(None if NO_KERNEL.search(str(e)) else (operator, "PyTorch refuses: " + what))
            if name not in ours:
                return found
        value = names.get(name)
        if name in ours and isinstance(value, torch.Tensor):
            what = difference(value, ours[name])
            if what and "Mismatched" in what and conditioned_ill(run, expression, name, names, value):
                what = None
            if what:
                found.append((operator, what))
        if name in ours:
            names[name] = ours[name]
    return found


def conditioned_ill(run, expression, name, names, value):
    wide = {k: widened(v) for k, v in names.items()}
    try:
        with torch.no_grad():
            exact = eval(run, wide)
        index = re.search(r"\[(\d+)\]$", expression)
        exact = exact[int(index.group(1))] if index and expression != run else exact
        return values_differ(exact.to(value.dtype), value) is not None
    except Exception:
        return False


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("fuzz")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--only", default="")
    a = p.parse_args()
    kinds, graphs, failed, unknown = {}, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        run = [a.fuzz, "--write", folder, "--seed", str(a.seed), "--count", str(a.count), "--only", a.only]
        subprocess.run(run, stderr=subprocess.DEVNULL, check=False)  # exit code 1: a graph crashed; compare the others
        for path in sorted(glob.glob(folder + "/*.safetensors"), key=lambda s: int(os.path.basename(s).split(".")[0])):
            stem = path[:-len(".safetensors")]
            text = open(stem + ".py").read()
            graphs += 1
            differences = check(text, read(path))
            unknown += differences.count(None)
            differences = [d for d in differences if d]
            failed += bool(differences)
            for operator, what in differences:
                kind = f"{operator} {re.sub(r'[0-9.e+-]+', '#', what)[:60]}"
                kinds[kind] = kinds.get(kind, 0) + 1
                if kinds[kind] == 1:
                    print(f"# seed {os.path.basename(stem)}: {operator}: {what}\n{text}")
    for kind, n in sorted(kinds.items(), key=lambda k: -k[1]):
        print(f"{n:6} {kind}")
    print(f"{graphs} graphs, {failed} with differences; {unknown} calls without a CPU kernel of PyTorch's")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
