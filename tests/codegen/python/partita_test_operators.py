"""Operators that only this module knows: test_torch_columns.cpp."""

import torch

library = torch.library.Library("partita_test", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.define("halves(Tensor x) -> (Tensor, Tensor)")
for key in ("CPU", "Meta"):
    library.impl("twice", lambda x: x * 2, key)
    library.impl("halves", lambda x: (x[: x.shape[0] // 2].clone(), x[x.shape[0] // 2 :].clone()), key)
