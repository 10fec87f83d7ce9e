#!/usr/bin/env python3
"""Stands for the Python that runs PyTorch, and misbehaves as its first import says: test_torch_worker.cpp, and
minify_kills.py of tests/cli, for which it fails where tanh and exp are in a graph."""

import json
import os
import socket
import struct
import sys
import time


def packed(message):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack("<Q", len(body)), body


def receive(connection):
    header, fds, _, _ = socket.recv_fds(connection, 8, 1)
    body = b""
    while len(body) < struct.unpack("<Q", header)[0]:
        body += connection.recv(1 << 20)
    return json.loads(body)


def send(connection, message, memory=b""):
    header, body = packed(message)
    fd = os.memfd_create("fake")
    os.write(fd, memory)
    socket.send_fds(connection, [header], [fd])
    connection.sendall(body)


def tensor(**changes):
    return {"tensor": {"storage": 1, "dtype": "float32", "sizes": [2], "strides": [1], "offset": 0} | changes}


def answer(**changes):
    return {"status": "ok", "values": [tensor()], "storages": [8]} | changes


FLOATS = struct.pack("<2f", 5, 6).ljust(64, b"\0")  # storages lie at multiples of 64 bytes
ANSWERS = {
    "right": answer(),
    "no JSON": b"{",
    "a list": [1],
    "no status": {},
    "a number as status": {"status": 5},
    "an unknown status": {"status": "perhaps"},
    "no values": answer(values=None),
    "too many values": answer(values=[tensor(), 3]),
    "a storage too far": answer(values=[tensor(storage=2)]),
    "a tensor beyond its storage": answer(values=[tensor(sizes=[3])]),
    "a negative stride": answer(values=[tensor(strides=[-1])]),
    "an unknown dtype": answer(values=[tensor(dtype="float7")]),
    "sizes of text": answer(values=[tensor(sizes=["2"])]),
    "more memory than there is": answer(storages=[1 << 40]),
    "memory without an end": answer(storages=[(1 << 64) - 8]),
    "negative memory": answer(storages=[-8]),
    "an exception of numbers": {"status": "exception", "type": 5, "message": [], "node": {}},
    "an exception": {"status": "exception", "type": "E", "message": "no", "node": "a"},
    "a refusal": {"status": "refused", "message": "not today"},
    "a death": {"status": "died", "signal": 6, "log": "noise\nterminate called\n"},
    "no memory": {"status": "memory"},
}  # fmt: skip
HELLOS = {"old": {"status": "refused", "message": "this torch is too old"}, "odd hello": [1], "hello without JSON": b"]"}


def try_once(control, mode):
    kind, fds, _, _ = socket.recv_fds(control, 16, 1)
    if not kind:
        sys.exit(0)
    connection = socket.socket(fileno=fds[0])
    request = receive(connection)
    if mode == "tanh and exp fail":
        time.sleep(0.02)
        graph = request["graph"]
        calls = {node["target"] for node in graph["nodes"] if node["op"] == "call_operator"}
        values = answer(values=[0] * len(graph["output"]["tuple"]), storages=[])
        fails = calls >= {"aten.tanh.default", "aten.exp.default"}
        return send(connection, ANSWERS["an exception"] if fails else values)
    if mode == "late":
        time.sleep(60)
    if mode == "the process ends":
        sys.exit(3)
    if mode == "no answer":
        return
    send(connection, {"status": "progress", "at": "running", "node": "a"})
    if mode == "in pieces":
        header, body = packed(answer())
        fd = os.memfd_create("fake")
        os.write(fd, FLOATS)
        socket.send_fds(connection, [header], [fd])
        for i in range(len(body)):
            connection.sendall(body[i : i + 1])
            time.sleep(0.001)
        return
    if mode == "half an answer":
        connection.sendall(struct.pack("<Q", 1000) + b"{")
        return
    send(connection, ANSWERS[mode], FLOATS)


def main():
    control = socket.socket(fileno=int(sys.argv[2]))
    if pids := os.environ.get("PARTITA_TEST_PIDS"):
        with open(pids, "a") as file:
            file.write(f"{os.getpid()}\n")
    header = control.recv(8)
    mode = json.loads(control.recv(1 << 20))["imports"][0]
    if mode == "no hello":
        print("something is missing here", file=sys.stderr)
        sys.exit(4)
    for part in packed(HELLOS.get(mode, {"status": "ok", "torch": "9.9"})):
        control.sendall(part)
    while True:
        try_once(control, mode)


main()
