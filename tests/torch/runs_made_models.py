#!/usr/bin/env python3
"""`partita run` on interp, debug and cpu gives eager's outputs and gradients for the models of made_models.py.

  runs_made_models.py PARTITA SOURCE_DIR [NAME]      exit 0 same numbers, 1 not, 77 PyTorch is not installed
"""
import os, subprocess, sys, tempfile

try:
    import torch
    from safetensors.torch import load_file, save_file
except ImportError:
    print("skipped: PyTorch or safetensors is not installed")
    sys.exit(77)

from made_models import MODELS

torch.set_num_threads(1)


def export(name, folder):
    """Writes program.pt2; returns inputs (and tangents) as the IO file has them, and eager's outputs and gradients."""
    torch.manual_seed(1)
    module, inputs, *dynamic = MODELS[name]()
    shapes = (dynamic[0],) if dynamic else None
    program = torch.export.export(module, inputs, dynamic_shapes={"inputs": shapes} if shapes else None, strict=False)
    torch.export.save(program, f"{folder}/program.pt2")
    given = {f"input.{i}": x.contiguous().clone() for i, x in enumerate(inputs)}
    outputs = module(*[x.clone() for x in inputs])
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    expected = {f"output.{i}": y.detach().contiguous().clone() for i, y in enumerate(outputs)}
    if outputs[0].requires_grad:
        loss = len(outputs) == 1 and outputs[0].dim() == 0
        tangents = [torch.ones_like(y) if loss else torch.randn_like(y).contiguous() for y in outputs]
        if not loss:
            given |= {f"tangent.{i}": t for i, t in enumerate(tangents)}
        torch.autograd.backward(outputs, tangents)
        expected |= {f"grad.{k}": p.grad.contiguous().clone() for k, p in module.named_parameters() if p.grad is not None}
    save_file(given, f"{folder}/io.safetensors")
    return expected


def differences(partita, backend, folder, expected):
    command = [partita, "run", f"{folder}/program.pt2", "--inputs", f"{folder}/io.safetensors", "--backend", backend,
               "-o", f"{folder}/out.safetensors"]
    if any(key.startswith("grad.") for key in expected):
        command.append("--train")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        yield f"exit code {done.returncode}: {done.stderr.strip()}"
        return
    found = load_file(f"{folder}/out.safetensors")
    half = any(t.dtype == torch.bfloat16 for t in load_file(f"{folder}/io.safetensors").values())
    for key, value in expected.items():
        try:
            torch.testing.assert_close(found[key], value, equal_nan=True, **(dict(rtol=2e-2, atol=1e-2) if half else
                                                                               dict(rtol=1e-4, atol=1e-5)))
        except (AssertionError, KeyError) as e:
            yield f"{key}: {e}"


def main():
    partita, chosen = sys.argv[1], sys.argv[3:]
    wrong = 0
    for name in chosen or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PARTITA_STORE"] = folder
            expected = export(name, folder)
            for backend in ("interp", "debug", "cpu"):
                for difference in differences(partita, backend, folder, expected):
                    print(f"{name} {backend}: {difference}")
                    wrong += 1
    print(f"{len(chosen or MODELS)} models, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
