"""write_wheel.py TREE SOURCE OUT: packs a folder as a wheel for Linux, with the version of SOURCE/CMakeLists.txt.

The format: packaging.python.org/en/latest/specifications/binary-distribution-format. The time of each file is fixed, so
that the same tree gives the same wheel.
"""

import base64
import hashlib
import os
import pathlib
import re
import sys
import zipfile

TREE, SOURCE, OUT = map(pathlib.Path, sys.argv[1:])
VERSION = re.search(r"project\(partita VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
TAG = "py3-none-linux_x86_64"
METADATA = f"""Metadata-Version: 2.1
Name: partita
Version: {VERSION}
Summary: A workbench for PyTorch's compilers: record, compare, locate, minify; a compiler for torch.compile
Requires-Python: >=3.10
Description-Content-Type: text/markdown

{(SOURCE / 'docs/python.md').read_text()}"""
WHEEL = f"Wheel-Version: 1.0\nGenerator: partita\nRoot-Is-Purelib: false\nTag: {TAG}\n"
ENTRY_POINTS = """[console_scripts]
partita = partita._program:main

[torch_dynamo_backends]
partita = partita.backend:partita
"""


def main():
    info = f"partita-{VERSION}.dist-info"
    files = {f.relative_to(TREE).as_posix(): (f.read_bytes(), os.access(f, os.X_OK) and f.suffix != ".py")
             for f in sorted(TREE.rglob("*")) if f.is_file()}
    files[f"{info}/LICENSE"] = (SOURCE / "LICENSE").read_bytes(), False
    for name, text in (("METADATA", METADATA), ("WHEEL", WHEEL), ("entry_points.txt", ENTRY_POINTS)):
        files[f"{info}/{name}"] = text.encode(), False
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, (data, _) in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode(), False
    with zipfile.ZipFile(OUT / f"partita-{VERSION}-{TAG}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, (data, executable) in files.items():
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)


main()
