"""The memory of a compiled step: what `partita query LOG peak` reads from a log, beside PyTorch's own run.

  memory_beside_torch.py PARTITA [MODEL...]

Runs in a Python with PyTorch. Each model is compiled by inductor with a TORCH_TRACE log; the profiler of the same
process adds up what the allocator gives and takes. Prints one line per model: both in bytes, and their ratio."""

import glob
import json
import os
import subprocess
import sys
import tempfile

PARTITA = os.path.abspath(sys.argv[1])


def child(name, train):
    import torch
    from torch import nn
    import torch.nn.functional as F
    torch.manual_seed(0)
    torch.set_num_threads(1)

    class Attention(nn.Module):
        def __init__(self, d=128, heads=4):
            super().__init__()
            self.qkv, self.out, self.heads = nn.Linear(d, 3 * d), nn.Linear(d, d), heads
            self.a, self.b = nn.LayerNorm(d), nn.LayerNorm(d)
            self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.a(x)).chunk(3, -1))
            x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.b(x))))

    class Bags(nn.Module):
        def __init__(self):
            super().__init__()
            self.bags = nn.ModuleList(nn.EmbeddingBag(2000, 32, mode="sum") for _ in range(4))
            self.top = nn.Sequential(nn.Linear(160, 64), nn.ReLU(), nn.Linear(64, 1))
            self.dense = nn.Linear(16, 32)

        def forward(self, x):
            n = x.shape[0]
            index = (x.abs() * 300).long() % 2000
            offsets = torch.arange(n) * 16
            return self.top(torch.cat([self.dense(x), *[b(index.reshape(-1), offsets) for b in self.bags]], 1))

    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(*[Attention() for _ in range(3)])

        def forward(self, x):
            return self.layers(x)

    models = {
        "mlp": (nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10)),
                torch.randn(128, 256)),
        "transformer": (Attend(), torch.randn(4, 64, 128)),
        "convolutions": (nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                                       nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                                       nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 64, 10)), torch.randn(8, 3, 32, 32)),
        "softmax": (nn.Sequential(nn.Linear(64, 4000), nn.Softmax(-1), nn.Linear(4000, 8)), torch.randn(256, 64)),
        "bags": (Bags(), torch.randn(64, 16)),
        "norms": (nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(200, 200), nn.LayerNorm(200), nn.SiLU())]),
                  torch.randn(300, 200)),
    }
    model, x = models[name]
    compiled = torch.compile(model)

    def step():
        if not train:
            with torch.no_grad():
                return compiled(x)
        for p in model.parameters():
            p.grad = None
        out = compiled(x).square().mean()
        out.backward()
        return out

    for _ in range(2):
        step()
    for p in model.parameters():
        p.grad = None
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        kept = step()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = most = 0
    for e in sorted(events, key=lambda e: e.start_ns()):
        now += e.nbytes()
        most = max(most, now)
    del kept
    print(most)


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[2] == "--child":
        child(sys.argv[3], sys.argv[4] == "train")
        sys.exit(0)
    names = sys.argv[2:] or ["mlp", "transformer", "convolutions", "softmax", "bags", "norms"]
    for name in names:
        for train, graph in (("train", "joint"), ("infer", "inference")):
            with tempfile.TemporaryDirectory() as folder:
                env = {**os.environ, "TORCH_TRACE": folder, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
                ran = subprocess.run([sys.executable, __file__, PARTITA, "--child", name, train], env=env,
                                     capture_output=True, text=True)
                if ran.returncode:
                    sys.exit(ran.stderr[-2000:])
                measured = int(ran.stdout.split()[-1])
                log = max(glob.glob(f"{folder}/*.log"), key=os.path.getsize)
                listed = subprocess.run([PARTITA, "query", log, "peak", "--json", "--graph", graph], capture_output=True, text=True)
                if listed.returncode:
                    print(f"{name:13} {train}: {listed.stderr.strip()}", file=sys.stderr)
                    continue
                told = json.loads(listed.stdout)["pytorch_code"]["peak_bytes"]
                print(f"{name:13} {train}: measured {measured:>9} told {told:>11.0f} ratio {told / measured:.3f}", flush=True)
