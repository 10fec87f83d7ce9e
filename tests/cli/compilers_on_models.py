#!/usr/bin/env python3
"""PyTorch's debugging compilers, and ours, run models for inference and in training, and none raises a false alarm:
each exits with 0 and gives the numbers of nop. Models are the samples and the corpus's small ones; with
PARTITA_ALL_MODELS in the environment, all of the corpus.     compilers_on_models.py PARTITA SOURCE_DIR"""
import os, pathlib, subprocess, sys, tempfile

COMPILERS = ["nop", "debug_nop", "print_compile", "draw_graph_compile", "graph_dumper_aot", "partita", "ts_compile",
             "simple_ts_compile", "nnc_jit", "memory_efficient_fusion", "debug_compile"]
SMALL = ["autoencoder_dyn", "dlrm", "mlp", "resnet"]  # one of convolutions, whose layouts we choose, one of symbols


def main():
    partita, source = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    corpus = pathlib.Path(os.environ.get("PARTITA_CORPUS", source / "../shared/corpus"))
    models = sorted(p.parent for p in (source / "resources/samples").rglob("program.pt2"))
    found = sorted(p.parent for p in (corpus / "models").glob("*/program.pt2"))
    if not found:
        print(f"no corpus beside the checkout ({corpus}); the samples are run")
    models += [m for m in found if m.name in SMALL or "PARTITA_ALL_MODELS" in os.environ]
    failures, runs = [], 0
    with tempfile.TemporaryDirectory() as work:

        def run(*words):
            return subprocess.run([partita, *map(str, words)], capture_output=True, text=True, cwd=work)

        for model in models:
            inputs = ["--inputs", model / "io.safetensors"] if (model / "io.safetensors").exists() else [
                "--random-weights", "0"]
            for train in ([], ["--train"]):
                for compiler in COMPILERS:
                    out, folder = f"{work}/{compiler}.safetensors", f"{work}/{compiler}"
                    os.makedirs(folder, exist_ok=True)
                    more = ["--compiler-folder", folder, "--compiler-name", "g.dot"] if compiler in (
                        "draw_graph_compile", "graph_dumper_aot", "debug_compile") else []
                    done = run("run", model / "program.pt2", *inputs, *train, "--compiler", compiler, *more, "-o", out)
                    runs += 1
                    what = f"{model.name} {' '.join(train)} {compiler}"
                    # get_inputs' format has no symbolic sizes.
                    if compiler == "graph_dumper_aot" and done.returncode == 3 and "without plain sizes" in done.stderr:
                        continue
                    if done.returncode:
                        failures.append(f"{what}: exit {done.returncode}: {done.stderr.strip()[:300]}")
                        continue
                    # As a column, so that the one run of nop serves all.
                    if compiler == "nop":
                        os.replace(out, f"{work}/reference.safetensors")
                        continue
                    same = run("compare", model / "program.pt2", *inputs, *train, "--reference",
                               f"file:{work}/reference.safetensors", "--against", f"file:{out}")
                    if same.returncode:
                        failures.append(f"{what}: other numbers than nop: {(same.stdout + same.stderr).strip()[:500]}")
    for failure in failures:
        print(failure)
    print(f"{runs} runs, {len(failures)} failed")
    return 1 if failures or not runs else 0


sys.exit(main())
