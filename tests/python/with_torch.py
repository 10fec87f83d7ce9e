#!/usr/bin/env python3
"""with_torch.py LIBRARY PROGRAM SCRIPT [ARGUMENT ...]: runs a script of this folder in the Python of PARTITA_TEST_PYTHON,
with the package of the source tree. Exit 77 (skipped) without it."""

import os
import pathlib
import sys
import tempfile

library, program, script, *arguments = sys.argv[1:]
python = os.environ.get("PARTITA_TEST_PYTHON")
if not python:
    print("PARTITA_TEST_PYTHON names no Python with PyTorch")
    sys.exit(77)
here = pathlib.Path(__file__).resolve().parent
os.environ.update(
    PARTITA_LIBRARY=library, PARTITA=program, PARTITA_STORE=tempfile.mkdtemp() + "/store.sqlite",
    PYTHONPATH=str(here.parents[1] / "codegen/python"))
os.execv(python, [python, str(here / script), *arguments])
