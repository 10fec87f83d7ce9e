"""Faults planted in the stages before inductor: each is named, and no other (tests/bench/locate/plant_stage.py).

  locate_stages.py; $PARTITA_TEST_PYTHON names a Python with PyTorch, without which this is skipped."""

import os
import subprocess
import sys
import tempfile

PYTHON = os.environ.get("PARTITA_TEST_PYTHON")
if not PYTHON:
    print("$PARTITA_TEST_PYTHON names no Python with PyTorch")
    sys.exit(77)
TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "locate", "try_locate.py")

with tempfile.TemporaryDirectory() as folder:
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([PYTHON, TOOL, "stages", "inference", "--log", f"{folder}/log"], capture_output=True, text=True,
                          env=env)  # fmt: skip
lines = [line for line in done.stdout.splitlines() if " | " in line]
assert done.returncode == 0 and len(lines) == 6 and all("| right " in line for line in lines), done.stdout + done.stderr
decomposition = next(line for line in lines if line.startswith("decomposition"))
assert "'node': 'h'" in decomposition, decomposition  # the name that dynamo's graph has for the call
assert "joint_custom_post_pass" in next(line for line in lines if line.startswith("joint pass")), lines
print("ok")
