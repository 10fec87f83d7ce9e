"""A program to record: train.py PROGRAM STEPS [FAULT].  Prints a hash of the losses and the parameters, and writes the
seconds of each step to $STEP_TIMES.  FAULT: one of inductor's own faults for tests, as inject_relu_bug_TESTING_ONLY, or
what plant_by_environment.py plants, as {"op": "tanh", "kind": "value", "factor": 1.05}."""

import hashlib
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

name, steps, fault = sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""
if fault.startswith("{"):
    os.environ["PARTITA_PLANT"] = fault
    import plant_by_environment  # noqa: F401
elif fault:
    import torch._inductor.config

    setattr(torch._inductor.config.cpp, fault, "accuracy")
torch.manual_seed(0)


class Small(nn.Module):
    """Two hidden layers, for what is about the program and not about the graph."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(64, 256), nn.Linear(256, 256), nn.Linear(256, 8)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.c(self.dropout(torch.relu(self.b(torch.relu(self.a(x))))))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(32, 10))  # fmt: skip

    def forward(self, x):
        return self.layers(x)


def bench(which):
    sys.path.insert(0, os.environ["BENCH_MODELS"])
    import models

    module, inputs = models.MODELS[which]()
    return module, lambda step: inputs, lambda out: out


def fine_tune():
    from transformers import BertConfig, BertForSequenceClassification

    module = BertForSequenceClassification(BertConfig(
        hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256, vocab_size=2000,
        hidden_act="relu", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))  # fmt: skip

    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, ids, labels):
            return self.inner(ids, labels=labels).loss

    return WithLoss(), lambda step: (torch.randint(0, 2000, (8, 32)), torch.randint(0, 2, (8,))), lambda out: out


PROGRAMS = {
    "small": lambda: (Small(), lambda step: (torch.randn(128, 64),), lambda out: out.square().mean()),
    "dropout": lambda: (Small(0.1), lambda step: (torch.randn(128, 64),), lambda out: out.square().mean()),
    "dynamic": lambda: (Small(), lambda step: (torch.randn(32 + 7 * (step % 5), 64),), lambda out: out.square().mean()),
    "nan": lambda: (Small(), lambda step: (torch.full((128, 64), float("nan")) if step == 40 else torch.randn(128, 64),),
                    lambda out: out.square().mean()),
    "convolutions": lambda: (Convolutions(), lambda step: (torch.randn(16, 3, 32, 32),),
                             lambda out: F.cross_entropy(out, torch.arange(16) % 10)),
    "fine_tune": fine_tune,
}  # fmt: skip

module, inputs_of, loss_of = PROGRAMS[name]() if name in PROGRAMS else bench(name)
if "RANK" in os.environ:
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(torch.distributed.get_rank())
    module = nn.parallel.DistributedDataParallel(module)
module.train()
compiled = torch.compile(module)
optimizer = torch.optim.SGD(module.parameters(), 0.01)
losses, seconds = [], []
for step in range(steps):
    inputs = inputs_of(step)
    begin = time.perf_counter()
    optimizer.zero_grad()
    loss = loss_of(compiled(*inputs))
    loss.backward()
    optimizer.step()
    seconds.append(time.perf_counter() - begin)
    losses.append(loss.item())
    if step == 5 and "KILL" in os.environ:
        os.kill(os.getpid(), 9)
parts = [str(losses).encode(), *(p.detach().numpy().tobytes() for p in module.parameters())]
os.write(1, f"{os.environ.get('RANK', '')} {losses[-1]:.6f} {hashlib.md5(b''.join(parts)).hexdigest()}\n".encode())
if "STEP_TIMES" in os.environ:
    with open(os.environ["STEP_TIMES"], "w") as file:
        file.write(" ".join(f"{s:.6f}" for s in seconds))
