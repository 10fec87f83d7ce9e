#!/usr/bin/env python3
"""The C interface of libpartita.so, without PyTorch: compiles, runs, writes inputs, symbols, refusals, bad input.

    compiler_abi.py LIBRARY
"""

import ctypes
import json
import os
import pathlib
import sys
import tempfile
import threading

os.environ["PARTITA_LIBRARY"] = sys.argv[1]
os.environ["PARTITA_STORE"] = tempfile.mkdtemp() + "/store.sqlite"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "codegen/python"))
from partita import _library  # noqa: E402

LIB = _library.load()
FLOAT, INT = _library.DTYPES.index("float32") + 1, _library.DTYPES.index("int64") + 1


def tensor(values, sizes, kept, dtype=FLOAT):
    kind = ctypes.c_float if dtype == FLOAT else ctypes.c_int64
    memory = (kind * max(len(values), 1))(*values)
    dims = (ctypes.c_int64 * len(sizes))(*sizes)
    kept += (memory, dims)
    return _library.Value(ctypes.addressof(memory), dtype, len(sizes), ctypes.cast(dims, ctypes.POINTER(ctypes.c_int64)),
                          None, None, -1, 0), memory


def node(name, target, *args, meta="f32[4][1]cpu", **kwargs):
    return {"op": "call_operator", "name": name, "target": target, "args": list(args), "kwargs": kwargs, "meta": meta}


def given(name, meta="f32[4][1]cpu"):
    return {"op": "placeholder", "name": name, "meta": meta}


def ref(name):
    return {"node": name}


def graph(*nodes, output, **more):
    return json.dumps({"name": "tried", "nodes": list(nodes), "output": {"tuple": output}, **more}).encode()


def compiled(text, attributes=()):
    handle = ctypes.c_void_p()
    values = (_library.Value * max(len(attributes), 1))(*attributes)
    _library.check(LIB.partita_graph_compile(text, len(text), values, len(attributes), ctypes.byref(handle)))
    return handle


def run(handle, inputs, count):
    values, outputs = (_library.Value * max(len(inputs), 1))(*inputs), (_library.Value * max(count, 1))()
    _library.check(LIB.partita_graph_run(handle, values, len(inputs), outputs, count, None))
    return outputs


def floats(value, n):
    return list((ctypes.c_float * n).from_address(value.data))


def refused(text, code, status=_library.BAD_INPUT):
    try:
        compiled(text)
    except _library.PartitaError as error:
        assert error.code == code and error.status == status, (error.code, error.status, str(error))
        return error
    raise AssertionError(f"{text[:200]} was compiled")


def check_run():
    kept = []
    a, _ = tensor([1, 2, 3, 4], [4], kept)
    b, written = tensor([10, 20, 30, 40], [4], kept)
    text = graph(
        given("a"), given("b"), node("add", "aten.add.Tensor", ref("a"), ref("b")),
        node("view", "aten.view.default", ref("a"), [2, 2], meta="f32[2, 2][2, 1]cpu"),
        node("copy", "aten.copy_.default", ref("b"), ref("add")),
        output=[ref("add"), ref("view"), ref("a"), None], config={"threads": 1})
    handle = compiled(text)
    out = run(handle, [a, b], 4)
    assert floats(out[0], 4) == [11, 22, 33, 44] == list(written)
    assert out[0].input in (-1, 1), out[0].input
    assert (out[1].input, out[1].rank, out[2].input, out[3].dtype) == (0, 2, 0, 0)
    assert out[1].data == a.data
    LIB.partita_graph_release(out, 4)
    # The caller's memory.
    into, there = tensor([0] * 4, [4], kept)
    outputs = (_library.Value * 4)(into)
    values = (_library.Value * 2)(a, b)
    _library.check(LIB.partita_graph_run(handle, values, 2, outputs, 4, None))
    assert list(there) == [12, 24, 36, 48]
    LIB.partita_graph_release(ctypes.cast(ctypes.byref(outputs, ctypes.sizeof(into)), ctypes.POINTER(_library.Value)), 3)
    # A call that comes again.
    wanted = (_library.Value * 4)(into)
    call = ctypes.c_void_p()
    _library.check(LIB.partita_call_prepare(handle, values, 2, wanted, 4, ctypes.byref(call)))
    import struct
    for _ in range(3):
        _library.check(LIB.partita_call_run(call, struct.pack("2Q", a.data, b.data), struct.pack("Q", into.data), None))
    assert list(there) == [15, 30, 45, 60] == list(written)
    LIB.partita_call_free(call)
    # What does not fit.
    for inputs, why in (([a], "1 inputs are given"), ([a, tensor([1] * 3, [3], kept)[0]], "sizes"), ([a, _library.Value()], "")):
        try:
            run(handle, inputs, 4)
        except _library.PartitaError as error:
            assert why in str(error) and error.graph == "tried", str(error)
        else:
            raise AssertionError(why)
    LIB.partita_graph_free(handle)


def check_symbols():
    kept = []
    text = graph(
        given("n", "Sym(s0)"), given("a", "f32[s0, 3][3, 1]cpu"),
        node("mul", "aten.mul.Tensor", ref("a"), 2.0, meta="f32[s0, 3][3, 1]cpu"),
        {"op": "call_function", "name": "double", "target": "operator.mul", "args": [ref("n"), 2], "meta": "Sym(2*s0)"},
        output=[ref("mul"), ref("double")], symbols={"s0": {"hint": 4, "low": 2, "high": 100}})
    handle = compiled(text)
    for n in (4, 7, 2, 1, 9):
        number, _ = tensor([n], [], kept, INT)
        number.is_number = 1
        a, _ = tensor([float(i) for i in range(3 * n)], [n, 3], kept)
        out = run(handle, [number, a], 2)
        assert floats(out[0], 3 * n) == [2.0 * i for i in range(3 * n)] and list(out[0].sizes[:2]) == [n, 3]
        assert out[1].is_number and ctypes.c_int64.from_address(out[1].data).value == 2 * n
        LIB.partita_graph_release(out, 2)
    report = json.loads(_library.take_text(LIB, LIB.partita_graph_report(handle)))["compilations"]
    assert 1 <= len(report) <= 3 and report[0]["kind"] == "symbolic", report
    LIB.partita_graph_free(handle)


def check_attributes():
    kept = []
    weight, _ = tensor([1, 2, 3, 4], [4], kept)
    text = graph(given("a"), {"op": "get_attr", "name": "w", "target": "weight", "meta": "f32[4][1]cpu"},
                 node("mul", "aten.mul.Tensor", ref("a"), ref("w")), output=[ref("mul")], attributes={"weight": 0})
    handle = compiled(text, [weight])
    out = run(handle, [tensor([1, 1, 1, 2], [4], kept)[0]], 1)
    assert floats(out[0], 4) == [1, 2, 3, 8]
    LIB.partita_graph_release(out, 1)
    LIB.partita_graph_free(handle)


def check_refusals():
    text = graph(
        given("a"), given("c", "f32[4][1]cuda:0"), node("r", "aten.rand.default", [4]),
        node("own", "mylib.scale.default", ref("a")), node("s", "aten.sin.default", ref("a")),
        node("d", "aten.sin.default", ref("c"), meta="f32[4][1]cuda:0"),
        node("wrong", "aten.cat.default", [ref("a"), ref("a")], meta="f32[4][1]cpu"), output=[ref("s")])
    found = {r["node"]: r["why"] for r in _library.refused_calls(text)}
    assert set(found) == {"own", "d", "wrong"}, found
    assert "cuda:0" in found["d"]
    assert _library.knows("aten.add.Tensor") and not _library.knows("x")


def check_random():
    handle = compiled(graph(node("r", "aten.rand.default", [4]), output=[ref("r")]))
    assert LIB.partita_graph_draws(handle)
    try:
        run(handle, [], 1)
    except _library.PartitaError as error:
        assert "random state" in str(error), error
    else:
        raise AssertionError("it drew without a state")
    outputs = (_library.Value * 1)()
    state = ctypes.create_string_buffer(5056)
    assert LIB.partita_graph_run(handle, (_library.Value * 1)(), 0, outputs, 1, state) == _library.BAD_INPUT
    LIB.partita_graph_free(handle)


def check_bad_input():
    a = given("a")
    for text in (b"", b"{", b"[]", b"3", b'{"nodes": 3}', b'{"nodes": [3]}',
                 graph(a, output=[ref("b")]), graph(a, a, output=[ref("a")]),
                 graph(node("x", "aten.sin.default", ref("x")), output=[ref("x")]),
                 graph(a, node("x", "os.system(1)", ref("a")), output=[ref("x")]),
                 graph({"op": "get_attr", "name": "w", "target": "w"}, output=[ref("w")]),
                 graph(a, {"op": "output", "name": "o"}, output=[]),
                 graph(given("a", "f32[99999999999999999999][1]cpu"), output=[ref("a")]),
                 graph(a, output=[ref("a")], config={"no_such_row": 1}), graph(a, output=[ref("a")], symbols=3)):
        try:
            LIB.partita_graph_free(compiled(text))
        except _library.PartitaError as error:
            assert error.status in (_library.BAD_INPUT, _library.UNSUPPORTED), (text, str(error))
            assert str(error) and "\n" not in str(error)
        else:
            raise AssertionError(text)
    deep = {"node": "a"}
    for _ in range(300):
        deep = {"tuple": [deep]}
    refused(graph(a, output=[deep]), "python.graph")
    refused(graph(a, node("x", "mylib.none.default", ref("a")), output=[ref("x")]), "ops.unknown", _library.UNSUPPORTED)
    assert LIB.partita_graph_compile(None, 0, None, 0, None) == _library.BAD_INPUT


def check_threads():
    kept, failures = [], []
    handle = compiled(graph(given("a"), node("x", "aten.exp.default", ref("a")), output=[ref("x")]))

    def work(number):
        try:
            a, _ = tensor([float(number)] * 4, [4], mine := [])
            first = run(handle, [a], 1)
            expected = floats(first[0], 4)
            for _ in range(200):
                out = run(handle, [a], 1)
                assert floats(out[0], 4) == expected
                LIB.partita_graph_release(out, 1)
            LIB.partita_graph_release(first, 1)
            text = graph(given("a"), node("x", "aten.mul.Tensor", ref("a"), float(number)), output=[ref("x")])
            own = compiled(text)
            out = run(own, [a], 1)
            assert floats(out[0], 4) == [float(number) ** 2] * 4
            LIB.partita_graph_release(out, 1)
            LIB.partita_graph_free(own)
            del mine
        except BaseException as error:  # told below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    LIB.partita_graph_free(handle)


for check in (check_run, check_symbols, check_attributes, check_refusals, check_random, check_bad_input, check_threads):
    check()
    print(f"{check.__name__}: ok")
