"""Partita's Python process, started as Partita starts it, so that what is timed finds it warm."""
import json, os, shutil, socket, struct, subprocess, tempfile


class WarmPython:
    """`words` are the arguments by which `partita minify` uses the process, which needs `pass_fds`."""

    def __init__(self, python, source, cache, imports=(), env=None):
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.folder = tempfile.TemporaryDirectory()  # the process has files beside its own, for the logs of tries
        shutil.copytree(os.path.join(source, "codegen/torch/worker"), self.folder.name, dirs_exist_ok=True)
        self.process = subprocess.Popen([python, f"{self.folder.name}/worker.py", str(theirs.fileno())], pass_fds=[theirs.fileno()],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)  # fmt: skip
        theirs.close()
        self.send(self.control, {"cache": cache, "imports": list(imports)})
        self.hello = self.receive(self.control)
        assert self.hello["status"] == "ok", self.hello
        self.pass_fds = [self.control.fileno()]
        self.words = ["--python", python, "--python-process", str(self.control.fileno())]
        self.words += [word for name in imports for word in ("--python-import", name)]
        self.warm()

    def warm(self):
        ours, theirs = socket.socketpair()
        socket.send_fds(self.control, [b"warm"], [theirs.fileno()])
        theirs.close()
        self.send(ours, {"verb": "none"})
        self.receive(ours)

    @staticmethod
    def send(connection, message):
        body = json.dumps(message).encode()
        connection.send(struct.pack("<Q", len(body)))
        connection.send(body)

    @staticmethod
    def receive(connection):
        body = b""
        size = struct.unpack("<Q", connection.recv(8))[0]
        while len(body) < size:
            body += connection.recv(size - len(body))
        return json.loads(body)

    def close(self):
        self.control.close()
        self.process.wait()
        self.folder.cleanup()
