"""Twenty training steps of several models under a backend, beside eager: losses, seconds of the first step, step time,
compilations.

    training.py [NAME ...] [--backends partita,inductor] [--steps 20] [--threads 2] [--json]

Exit 1 when a loss of the backend partita is farther than 1e-5 (relative) from eager's.
"""

import argparse
import json
import sys
import time
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


@model
def mlp():
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 10)), lambda step: (
        torch.randn(32, 64), torch.randint(0, 10, (32,)))


@model
def mlp_dropout():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 10)), lambda step: (
        torch.randn(32, 64), torch.randint(0, 10, (32,)))


@model
def mlp_dynamic():
    """The batch has another size in each step."""
    return nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10)), lambda step: (
        torch.randn(8 + step % 7, 64), torch.randint(0, 10, (8 + step % 7,)))


@model
def cnn():
    def block(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, stride=2), nn.BatchNorm2d(o), nn.ReLU())

    return nn.Sequential(block(3, 16), block(16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)), (
        lambda step: (torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))))


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        y = F.scaled_dot_product_attention(split(q), split(k), split(v), is_causal=True)
        return F.dropout(self.out(y.transpose(1, 2).flatten(2)), self.dropout, self.training)


class Gpt(nn.Module):
    def __init__(self, vocabulary=100, width=64, layers=2, length=32, dropout=0.0):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(
            nn.ModuleList([nn.LayerNorm(width), Attention(width, 4, dropout), nn.LayerNorm(width),
                           nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))])
            for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for before, attention, between, mlp in self.layers:
            x = x + attention(before(x))
            x = x + mlp(between(x))
        return self.head(self.norm(x)).flatten(0, 1)


def words(step):
    tokens = torch.randint(0, 100, (4, 33))
    return tokens[:, :-1], tokens[:, 1:].flatten()


@model
def gpt():
    return Gpt(), words


@model
def gpt_dropout():
    return Gpt(dropout=0.1), words


@model
def gru():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.GRUCell(16, 32), nn.Linear(32, 10)

        def forward(self, x):
            h = x.new_zeros(x.shape[0], 32)
            for i in range(6):
                h = self.cell(x[:, i], h)
            return self.head(h)

    return Model(), lambda step: (torch.randn(8, 6, 16), torch.randint(0, 10, (8,)))


@model
def autoencoder_bfloat16():
    """Losses are rounded to bfloat16's eight bits, so that a hundredth is as near as they get."""
    return nn.Sequential(nn.Linear(32, 8), nn.SiLU(), nn.Linear(8, 10)).to(torch.bfloat16), lambda step: (
        torch.randn(16, 32, dtype=torch.bfloat16), torch.randint(0, 10, (16,)))


def train(name, backend, steps):
    """{losses, first_s, step_ms, compilations}."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    network, batch = MODELS[name]()
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3)

    def loss_of(x, y):
        return F.cross_entropy(network(x), y)

    compiled = loss_of if backend == "eager" else torch.compile(loss_of, backend=named(backend))
    torch.manual_seed(1)
    losses, times = [], []
    for step in range(steps):
        x, y = batch(step)
        begun = time.perf_counter()
        optimiser.zero_grad()
        loss = compiled(x, y)
        loss.backward()
        optimiser.step()
        times.append(time.perf_counter() - begun)
        losses.append(loss.item())
    return {
        "losses": losses, "first_s": times[0], "step_ms": 1e3 * sorted(times[steps // 2 :])[len(times[steps // 2 :]) // 2],
        "compilations": torch._dynamo.utils.counters["stats"]["unique_graphs"],
    }


def named(backend):
    if backend != "partita":
        return backend
    from partita.backend import partita

    return partita


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*")
    options.add_argument("--backends", default="partita")
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(given.threads)
    wrong, answers = False, {}
    for name in given.names or MODELS:
        expected = train(name, "eager", given.steps)
        answers[name] = {"eager": expected}
        for backend in given.backends.split(","):
            found = answers[name][backend] = train(name, backend, given.steps)
            apart = max(abs(a - b) / max(abs(a), 1e-9) for a, b in zip(expected["losses"], found["losses"]))
            found["apart"] = apart
            far = apart > (1e-2 if name.endswith("bfloat16") else 1e-5)
            wrong |= far and backend == "partita"
            if not given.json:
                print(f"{name:<22}{backend:<10} apart {apart:.1e}{(' WRONG' if backend == 'partita' else ' (other numbers)') if far else ''}  first step "
                      f"{found['first_s']:.2f} s  step {found['step_ms']:.2f} ms (eager {expected['step_ms']:.2f})  "
                      f"graphs {found['compilations']}", flush=True)
    if given.json:
        print(json.dumps(answers))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
