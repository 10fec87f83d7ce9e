"""Operators that only this module knows: test_torch_columns.cpp, and minify_torch.py of tests/cli."""

import torch

library = torch.library.Library("partita_test", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.define("halves(Tensor x) -> (Tensor, Tensor)")
for key in ("CPU", "Meta"):
    library.impl("twice", lambda x: x * 2, key)
    library.impl("halves", lambda x: (x[: x.shape[0] // 2].clone(), x[x.shape[0] // 2 :].clone()), key)


@torch.library.custom_op("partita_test::thrice", mutates_args=())
def thrice(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@thrice.register_fake
def _(x):
    return torch.empty_like(x)
