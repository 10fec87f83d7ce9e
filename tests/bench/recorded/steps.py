"""The seconds of a training step that is recorded beside one that is not, in turns in one process, and what the options
cost that watch every call.

  steps.py [SECONDS]      by a Python that has PyTorch and finds the package partita (PYTHONPATH=codegen/python)
"""

import os
import shutil
import statistics
import sys
import tempfile
import time

import torch
from torch import nn

import partita.record

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 6


def small():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8)), torch.randn(128, 64)


def wide():
    return nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 1024)), torch.randn(256, 1024)


def convolutions():
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers), torch.randn(16, 3, 64, 64)


def encoder():
    return nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True), torch.randn(8, 64, 128)


def step_of(make):
    """A step of training of a new copy of the model."""
    torch.manual_seed(0)
    module, x = make()
    module.train()
    optimizer = torch.optim.SGD(module.parameters(), 1e-3)

    def forward(x):
        return module(x).square().mean()

    # dynamo takes what it compiled of the same code before, so each copy has code of its own.
    forward.__code__ = forward.__code__.replace()
    compiled = torch.compile(forward)

    def step():
        optimizer.zero_grad()
        compiled(x).backward()
        optimizer.step()

    step()
    step()
    return step


for make in (small, wide, convolutions, encoder):
    for options in ({}, {"until_nan": True}, {"until_exception": True}):
        torch._dynamo.reset()
        folder = tempfile.mkdtemp()
        plain = step_of(make)
        partita.record.start(folder + "/recording", **options)
        recorded = step_of(make)
        if not os.path.exists(folder + "/recording/session.json"):
            sys.exit("nothing was recorded")
        times: dict[str, list[float]] = {"plain": [], "recorded": []}
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            for name, step in (("plain", plain), ("recorded", recorded)):
                begin = time.perf_counter()
                step()
                times[name].append(time.perf_counter() - begin)
        partita.record.stop()
        alone, with_recorder = (statistics.median(times[name]) for name in ("plain", "recorded"))
        print(f"{make.__name__} {' '.join(options) or 'plain options'}: {with_recorder / alone:.3f} of a step of "
              f"{alone * 1e3:.2f} ms, {(with_recorder - alone) * 1e6:.0f} us more", flush=True)  # fmt: skip
        shutil.rmtree(folder)
