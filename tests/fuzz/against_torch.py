#!/usr/bin/env python3
"""Random graphs by PyTorch and by the reference interpreter.

  against_torch.py PARTITA_FUZZ [--seed S] [--count N]     exit 0 same numbers, 1 not, 77 PyTorch is not installed
"""
import argparse, glob, json, os, re, subprocess, sys, tempfile

try:
    import torch
    from safetensors import safe_open
except ImportError:
    print("skipped: PyTorch or safetensors is not installed")
    sys.exit(77)

torch.set_num_threads(1)


def laid_out(values, stride):
    length = 1 + sum((d - 1) * s for d, s in zip(values.shape, stride)) if values.numel() else 0
    view = torch.zeros(length, dtype=values.dtype).as_strided(values.shape, stride)
    view[tuple(slice(0, 1) if s == 0 else slice(None) for s in stride)].copy_(
        values[tuple(slice(0, 1) if s == 0 else slice(None) for s in stride)])
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


def difference(expected, found):
    """None, or what differs. A graph whose values are ill-conditioned is told by its run in double precision."""
    for i, (a, b) in enumerate(zip(expected, found)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return i, f"{a.dtype}{list(a.shape)} expected, {b.dtype}{list(b.shape)} found"
        if a.numel() > 1 and [s for s, n in zip(a.stride(), a.shape) if n > 1] != [s for s, n in zip(b.stride(), b.shape) if n > 1]:
            return i, f"strides {a.stride()} expected, {b.stride()} found"
        try:
            torch.testing.assert_close(b, a, equal_nan=True, check_stride=False)
        except AssertionError as e:
            return i, str(e).split("\n")[2 if "Mismatched" in str(e) else 0]
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("fuzz"), p.add_argument("--seed", type=int, default=1), p.add_argument("--count", type=int, default=1000)
    a = p.parse_args()
    kinds, graphs, failed = {}, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([a.fuzz, "--write", folder, "--seed", str(a.seed), "--count", str(a.count)], check=True)
        for path in sorted(glob.glob(folder + "/*.py"), key=lambda s: int(os.path.basename(s)[:-3])):
            text = open(path).read()
            tensors = read(path[:-3] + ".safetensors")
            names = dict(torch=torch, device=torch.device, inf=float("inf"), nan=float("nan"))
            exec(re.sub(r"^class [^\s(]+\(", "class Graph(", text, count=1, flags=re.M), names)
            graphs += 1
            run = names["Graph"]().forward
            try:
                with torch.no_grad():
                    results = run(*numbered(tensors, "input"))
                    wide = [t.double() if t.dtype.is_floating_point else t for t in numbered(tensors, "input")]
            except Exception as e:
                what = (0, "PyTorch refuses: " + str(e).split("\n")[0])
            else:
                what = difference(results, numbered(tensors, "output"))
                if what and "Mismatched" in what[1]:
                    try:
                        exact = run(*wide)
                        if difference([t.to(r.dtype) for t, r in zip(exact, results)], results):
                            what = None
                    except Exception:
                        pass
            if what:
                failed += 1
                ops = re.findall(r"torch\.ops\.(\S+?)\(", text)
                kind = f"{ops[-1] if ops else '?'} {re.sub(r'[0-9.e+-]+', '#', what[1])[:60]}"
                kinds[kind] = kinds.get(kind, 0) + 1
                if kinds[kind] <= 2:
                    print(f"# seed {os.path.basename(path)[:-3]}: output {what[0]}: {what[1]}\n{text}")
    for kind, n in sorted(kinds.items(), key=lambda k: -k[1]):
        print(f"{n:6} {kind}")
    print(f"{graphs} graphs, {failed} differences")
    sys.exit(1 if failed else 0)


main()
