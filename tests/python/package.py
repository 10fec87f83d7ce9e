#!/usr/bin/env python3
"""The package beside the backend: errors, warnings, statistics, options, threads, forks, the verbs' answers."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import warnings

import torch

import partita
from partita.backend import partita as backend

FAILED = []


def check(f):
    torch._dynamo.reset()
    partita.stats.reset()
    try:
        f()
        print(f"{f.__name__}: ok", flush=True)
    except Exception as error:  # told at the end
        import traceback

        traceback.print_exc()
        FAILED.append((f.__name__, error))


def compiled(f, **more):
    return torch.compile(f, backend=backend, **more)


@torch.library.custom_op("partita_test::scale", mutates_args=())
def scale(x: torch.Tensor, n: float) -> torch.Tensor:
    return x * n


@scale.register_fake
def _(x, n):
    return torch.empty_like(x)


@check
def refused_is_told_once_and_counted():
    f = compiled(lambda a: scale(a + 1, 3.0) * 2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for n in (3, 4, 5):
            f(torch.ones(n))
    told = [str(w.message) for w in told if issubclass(w.category, partita.PartitaWarning)]
    assert len(told) == 1 and "partita_test.scale.default" in told[0], told
    done = partita.stats()
    assert list(done["refused"])[0][0] == "partita_test.scale.default" and done["compiled"] >= 1, done
    assert "partita_test.scale.default" in repr(done) and "<table>" in done._repr_html_()


@check
def warnings_can_be_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error", partita.PartitaWarning)
        try:
            compiled(lambda a: scale(a + 1, 2.0))(torch.ones(3))
        except Exception as error:
            assert "partita_test.scale" in str(error), error
        else:
            raise AssertionError("it ran")


@check
def random_numbers_are_torchs():
    """Of each operator that draws, in several sizes and dtypes; and the state after them."""
    draws = {
        "rand": lambda n, d: torch.rand(n, dtype=d), "randn": lambda n, d: torch.randn(n, 3, dtype=d),
        "rand_like": lambda n, d: torch.rand_like(torch.empty(n, 2, dtype=d)),
        "randn_like": lambda n, d: torch.randn_like(torch.empty(n, dtype=d)),
        "randint": lambda n, d: torch.randint(0, 1000, (n,)), "randint_big": lambda n, d: torch.randint(-5, 2**40, (n,)),
        "randperm": lambda n, d: torch.randperm(n), "normal": lambda n, d: torch.normal(2.0, 3.0, (n,), dtype=d),
        "bernoulli": lambda n, d: torch.bernoulli(torch.full((n,), 0.3, dtype=d)),
        "uniform": lambda n, d: torch.empty(n, dtype=d).uniform_(-1, 2),
        "exponential": lambda n, d: torch.empty(n, dtype=d).exponential_(2.0),
        "geometric": lambda n, d: torch.empty(n, dtype=d).geometric_(0.2),
        "cauchy": lambda n, d: torch.empty(n, dtype=d).cauchy_(),
        "log_normal": lambda n, d: torch.empty(n, dtype=d).log_normal_(),
        "random": lambda n, d: torch.empty(n, dtype=d).random_(),
        "dropout": lambda n, d: torch.nn.functional.dropout(torch.ones(n, dtype=d), 0.3),
        "alpha_dropout": lambda n, d: torch.nn.functional.alpha_dropout(torch.ones(n, dtype=d), 0.3),
        "rrelu": lambda n, d: torch.nn.functional.rrelu(-torch.ones(n, dtype=d), training=True),
        "multinomial": lambda n, d: torch.multinomial(torch.full((n + 1,), 0.5, dtype=d), 1),
        "poisson": lambda n, d: torch.poisson(torch.full((n,), 3.0, dtype=d)),
    }
    wrong = []
    for name, draw in draws.items():
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            torch._dynamo.reset()
            f = compiled(lambda a, draw=draw, dtype=dtype: (draw(a.shape[0], dtype), a + 1), dynamic=False)
            for n in (1, 7, 16, 100, 3000):
                torch.manual_seed(n)
                torch.rand(3), torch.randn(1)  # a number of a pair is left
                begun = torch.get_rng_state()
                expected, state = draw(n, dtype), torch.get_rng_state()
                torch.set_rng_state(begun)
                found = f(torch.ones(n))[0]
                if not torch.equal(found, expected) or not torch.equal(state, torch.get_rng_state()):
                    wrong.append((name, dtype, n))
    assert not wrong, wrong


@check
def options_are_rows_of_the_configuration():
    assert compiled(lambda a: (a + 1).sin(), options={"fuse": False})(torch.ones(3)).shape == (3,)
    for options, word in (({"no_such_row": 1}, "no_such_row"), ({"threads": "many"}, "threads")):
        torch._dynamo.reset()
        try:
            compiled(lambda a: (a + 1).sin(), options=options)(torch.ones(3))
        except Exception as error:
            assert word in str(error), error
        else:
            raise AssertionError(f"{options} was taken")


@check
def errors_name_the_graph():
    def f(a, i):
        return a[i] * 2

    g = compiled(f)
    a = torch.arange(4.0)
    assert g(a, torch.tensor([1])) == 2
    try:
        g(a, torch.tensor([9]))
    except (RuntimeError, IndexError) as error:
        assert "0/0" in str(error) or getattr(error, "graph", ""), str(error)
    else:
        raise AssertionError("an index beyond the end was read")
    assert g(a, torch.tensor([2])) == 4  # and it goes on


@check
def threads_follow_torch():
    before = torch.get_num_threads()
    f = compiled(lambda a: (a * 2).relu())
    a = torch.randn(1000, 100)
    try:
        for n in (1, 2, 1):
            torch.set_num_threads(n)
            assert torch.equal(f(a), (a * 2).relu())
    finally:
        torch.set_num_threads(before)


@check
def several_threads_call():
    f = compiled(lambda a: (a @ a.t()).softmax(-1))
    f(torch.randn(8, 8))
    wrong = []

    def work(seed):
        g = torch.Generator().manual_seed(seed)
        for _ in range(50):
            a = torch.randn(8, 8, generator=g)
            if not torch.allclose(f(a), (a @ a.t()).softmax(-1), atol=1e-6):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong


@check
def forked_child_runs():
    """With one thread: libgomp's, which PyTorch brings, do not live in a child."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    f = compiled(lambda a: (a * 3).exp())
    a = torch.randn(100, 1000)
    expected = f(a)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if torch.allclose(f(a), expected) else 1)
    torch.set_num_threads(before)
    assert os.waitpid(pid, 0)[1] == 0


@check
def results_are_pytorchs():
    f = compiled(lambda a: a + 1)
    out = f(torch.ones(4))
    assert out.untyped_storage().resizable()
    kept = [f(torch.full((4,), float(n))) for n in range(5)]
    assert [k[0].item() for k in kept] == [1, 2, 3, 4, 5]
    out.resize_(100).zero_()


@check
def imports_no_torch():
    code = "import sys, partita; partita.stats(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@check
def no_library_is_one_line():
    code = "import partita._library as l\ntry: l.load()\nexcept OSError as e: print(e)"
    env = {**os.environ, "PARTITA_LIBRARY": "/nowhere/libpartita.so"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert "/nowhere/libpartita.so" in done.stdout, done


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)), (torch.randn(3, 4),)


FOLDER = pathlib.Path(tempfile.mkdtemp())


@check
def compares():
    answer = partita.compare(*model(), against=["cpu", "torch:eager"], train=True, folder=FOLDER / "compare")
    assert not answer.differs and {r[1] for r in answer.rows} == {"cpu", "torch:eager"}, answer
    assert "grad.0.weight" in repr(answer) and "<table>" in answer._repr_html_()
    assert (answer.folder / "program.pt2").exists() and json.loads((answer.folder / "compare.json").read_text())


@check
def compares_what_differs():
    answer = partita.compare(*model(), against="cpu+plant=aten.gelu.default:wrong")
    assert answer.differs and "DIFFERS" in repr(answer), answer


@check
def functions_and_paths():
    answer = partita.compare(lambda a, b: a.sin() + b, (torch.ones(3), torch.ones(3)), against="cpu", folder=FOLDER / "f")
    assert not answer.differs
    assert partita.aot(FOLDER / "compare/program.pt2", folder=FOLDER / "aot").rows


@check
def makes_graphs():
    answer = partita.aot(*model(), folder=FOLDER / "made")
    assert {"forward.py", "backward.py", "joint.py"} <= {row[0] for row in answer.rows}, answer


@check
def minifies():
    answer = partita.minify(*model(), check="accuracy:cpu", folder=FOLDER / "small",
                            more=["--plant", "aten.gelu.default:wrong"])
    assert (answer.folder / "graph.py").exists(), answer


@check
def shows_a_page():
    page = partita.show(*model(), folder=FOLDER / "page")
    html = page._repr_html_()
    assert html.startswith("<iframe srcdoc=") and "gelu" in html and "http://" not in html.replace("http://www.w3.org", "")


@check
def bad_calls_are_one_line():
    for call, error in (
        (lambda: partita.compare(FOLDER / "none.pt2"), partita.VerbError),
        (lambda: partita.compare(model()[0]), TypeError),
        (lambda: partita.compare(*model(), against="no_backend"), partita.VerbError),
        (lambda: partita.no_such_name, AttributeError),
    ):
        try:
            call()
        except error as said:
            assert "\n" not in str(said), said
        else:
            raise AssertionError(call)
    os.environ.pop("DISPLAY", None), os.environ.pop("WAYLAND_DISPLAY", None)
    try:
        partita.open(FOLDER)
    except OSError as said:
        assert "display" in str(said)
    else:
        raise AssertionError("a window without a display")


for name, error in FAILED:
    print(f"{name}: {type(error).__name__}: {error}")
sys.exit(bool(FAILED))
