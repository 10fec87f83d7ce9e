#!/usr/bin/env python3
"""`partita query` answers each question of its help exactly. query.py PARTITA SOURCE_DIR"""
import json, os, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../support")
import trace_logs

partita, source = os.path.abspath(sys.argv[1]), sys.argv[2]
MODEL, IO = f"{source}/resources/samples/mlp/program.pt2", f"{source}/resources/samples/mlp/io.safetensors"
GRAPH = """class M(torch.nn.Module):
    def forward(self, x: "f32[4, 4]", y: "f64[4, 4]"):
        # File: /home/me/model.py:3 in forward, code: a = x.log()
        log: "f32[4, 4]" = torch.ops.aten.log.default(x)
        # File: /home/me/model.py:4 in forward, code: b = a * 2 + a.double() * y
        mul: "f32[4, 4]" = torch.ops.aten.mul.Tensor(log, 2)
        double: "f64[4, 4]" = torch.ops.aten._to_copy.default(log, dtype = torch.float64)
        mul_1: "f64[4, 4]" = torch.ops.aten.mul.Tensor(double, y)
        add: "f64[4, 4]" = torch.ops.aten.add.Tensor(mul, mul_1)
        return (add,)
"""
MASKED = """class GraphModule(torch.nn.Module):
    def forward(self, q: "f32[1, 2, 64, 16][2048, 1024, 16, 1]cpu"):
        row: "i64[64][1]cpu" = torch.ops.aten.arange.default(64, device = device(type='cpu'), pin_memory = False)
        column: "i64[64, 1][1, 1]cpu" = torch.ops.aten.unsqueeze.default(row, 1)
        later: "b8[64, 64][64, 1]cpu" = torch.ops.aten.gt.Tensor(row, column)
        mask: "f32[64, 64][64, 1]cpu" = torch.ops.aten._to_copy.default(later, dtype = torch.float32)
        mul: "f32[64, 64][64, 1]cpu" = torch.ops.aten.mul.Tensor(mask, -10000.0)
        attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(q, q, q, 0.0, False, attn_mask = mul)
        out: "f32[1, 2, 64, 16][2048, 1024, 16, 1]cpu" = attention[0]
        return (out,)
"""
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


with tempfile.TemporaryDirectory() as work:
    env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite"}
    graph = f"{work}/graph.py"
    open(graph, "w").write(GRAPH)

    def run(*words, code=0):
        done = subprocess.run([partita, "query", *words], capture_output=True, text=True, env=env)
        check(done.returncode == code, f"{words}: exit {done.returncode}, {done.stderr}")
        return done.stdout if code == 0 else done.stderr

    def nodes(*words):
        return [row["node"] for row in json.loads(run(*words, "--json"))["rows"]]

    check(nodes(graph, "users", "log") == ["mul", "double"], "users")
    check(nodes(graph, "path", "x", "mul_1") == ["x", "log", "double", "mul_1"], "path")
    check(nodes(graph, "path", "add", "x") == [] and "no path" in run(graph, "path", "add", "x"), "no path")
    check(nodes(graph, "line", "model.py:4") == ["mul", "double", "mul_1", "add"], "line")
    check(nodes(graph, "line", "odel.py:4") == [], "the name of a file is not its end")
    check(nodes(graph, "dtype", "f64") == ["y", "double", "mul_1", "add"], "dtype")
    # Random values are negative, too, whose logarithm is no number.
    check(nodes(graph, "nan", "--random-weights", "0") == ["log"], "nan")
    check("give --inputs" in run(graph, "nan", code=2), "nan without inputs")
    check("no node" in run(graph, "users", "nothing", code=2), "an unknown node")
    check("takes A B" in run(graph, "path", "x", code=2), "a path to nowhere")
    check("there are users, path" in run(graph, "why", code=2), "an unknown question")

    saved = json.loads(run(MODEL, "saved", "4", "--json"))["rows"]
    sizes = [row["number"] for row in saved]
    check(len(saved) == 4 and sizes == sorted(sizes, reverse=True), f"saved: {sizes}")
    # What a step holds: a measured run says the same, and so does the report.
    def program(verb, *words):
        return subprocess.run([partita, verb, *words], capture_output=True, text=True, env=env)

    for train in ([], ["--train"]):
        peak = json.loads(run(MODEL, "peak", *train, "--json"))
        bench = json.loads(program("bench", MODEL, *train, "--inputs", IO, "--seconds", "0").stdout)
        check(abs(bench["peak_bytes"] - peak["peak_bytes"]) <= 0.01 * bench["peak_bytes"],
              f"{train}: a step holds {bench['peak_bytes']} bytes, and peak says {peak['peak_bytes']}")
        check(sum(peak["held"].values()) == peak["peak_bytes"] and
              max(s["bytes"] for s in peak["in_use"]) == sum(row["number"] for row in peak["rows"]), f"peak {train}: {peak}")
    # What a library takes for itself counts, and what is computed once.
    masked = f"{work}/masked.py"
    open(masked, "w").write(MASKED)
    held = json.loads(run(masked, "peak", "--json"))
    ran = json.loads(program("bench", masked, "--random-weights", "0", "--seconds", "0").stdout)
    check(ran["peak_bytes"] == held["peak_bytes"] and held["held"]["constant"] == 4 * 64 * 64 and
          held["held"]["scratch"] > 0, f"masked: {ran['peak_bytes']} {held['held']}")
    program("report", MODEL, "-o", f"{work}/r.html")
    check(f"A training step holds</th><td>{peak['peak_bytes']:.0f} bytes" in open(f"{work}/r.html").read(), "the report's peak")
    kept = json.loads(run(MODEL, "saved", "--json"))["answer"].split("saved: ")[1].split()[0]
    check(peak["held"]["saved"] <= int(kept) <= bench["peak_bytes"], f"peak: {peak['held']}, {kept} saved")

    # A forward that is cut out already says itself what it saves; it is not differentiated once more.
    facts = json.loads(subprocess.run([partita, "aot", MODEL, "-o", f"{work}/aot", "--json"], capture_output=True,
                                      text=True, env=env).stdout)
    answer = run(f"{work}/aot", "saved", "--graph", "forward")
    check(f"{facts['saved_activation_bytes']} bytes of activations, {facts['saved_input_bytes']} bytes of inputs" in answer,
          f"saved of a forward graph: {answer}")
    check("ask the forward" in run(f"{work}/aot", "saved", "--graph", "backward", code=2), "saved of a backward graph")
    check("told by its backward" in run(f"{work}/aot/forward.py", "saved", code=2), "a forward without its backward")
    check("all values are finite" in run(MODEL, "nan", "--inputs", IO), "an mlp has finite values")

    # PyTorch's cut and ours are two. The log says under which budget PyTorch made its own; ours is made under the same.
    def cut_of(budget):
        out = f"{work}/cut{budget}"
        return out, json.loads(program("aot", MODEL, "-o", out, "--json", "--memory-budget", str(budget)).stdout)

    def write_log(graphs, budget):
        record = lambda name, text: [
            'V1121 08:13:51.015000 1 torch/a.py:1] {%s, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, "has_payload": ""}' %
            (f'"{name}": {{}}' if name.startswith("aot") else f'"artifact": {{"name": "{name}", "encoding": "json"}}'), text]
        texts = [(f"aot_{name}_graph", open(f"{graphs}/{name}.py").read()) for name in ("joint", "forward", "backward")]
        texts.insert(1, ("torch._functorch.config", '{"debug_assert": false, "activation_memory_budget": %s}' % budget))
        path = f"{work}/cut.log"
        open(path, "w").write(trace_logs.log([record(*each) for each in texts]))
        return path

    (least, smallest), (usual, largest) = cut_of(0), cut_of(1)
    bytes_of = lambda facts: (facts["saved_activation_bytes"], facts["saved_input_bytes"], len(facts["saved"]))
    check(bytes_of(smallest) < bytes_of(largest), f"budgets: {bytes_of(smallest)}, {bytes_of(largest)}")
    log = write_log(least, 1)
    both = json.loads(run(log, "cut", "--json"))
    check(bytes_of(both["theirs"]) == bytes_of(smallest), f"PyTorch's cut: {both['theirs']}")
    check(bytes_of(both["ours"]) == bytes_of(largest), f"our cut: {both['ours']}")
    check(both["theirs"]["recomputed"] == smallest["recomputed"], "what PyTorch computes again")
    again = [row for row in both["rows"] if "PyTorch computes it again" in row["text"]]
    saved_of = lambda facts: {value["name"] for value in facts["saved"]}
    check(again and {row["node"] for row in again} <= saved_of(largest) - saved_of(smallest), f"the difference: {again}")
    check({row["node"] for row in both["rows"]} == saved_of(smallest) | saved_of(largest), "values of both cuts")
    log = write_log(least, 0)
    both = json.loads(run(log, "cut", "--json"))
    check(bytes_of(both["theirs"]) == bytes_of(both["ours"]) and both["activation_memory_budget"] == 0,
          f"a log's budget: {both['ours']}")
    facts = lambda *words: json.loads(program("aot", log, "--graph", "0_0.aot_joint_graph", "-o", f"{work}/o", "--json", *words).stdout)
    check(bytes_of(facts()) == bytes_of(smallest), "aot under the log's budget")
    check(bytes_of(facts("--memory-budget", "1")) == bytes_of(largest), "a budget that is given counts more")
    program("aot", MODEL, "-o", f"{work}/eager", "--partitioner", "default")
    both = json.loads(run(write_log(f"{work}/eager", 1), "cut", "--json"))
    check(both["theirs"].get("partitioner") == "default", f"PyTorch's partitioner: {both['answer']}")
    # What PyTorch's own code holds: buf0 and buf2 at the second call; the reused memory counts once.
    post_grad = """class M(torch.nn.Module):
    def forward(self, arg0_1: "f32[4, 4][4, 1]cpu"):
        mm: "f32[4, 4][4, 1]cpu" = torch.ops.aten.mm.default(arg0_1, arg0_1)
        max_1 = torch.ops.aten.max.dim(mm, 1)
        getitem: "f32[4][1]cpu" = max_1[0]
        getitem_1: "i64[4][1]cpu" = max_1[1]
        return (getitem,)
"""
    code = """def call(args):
    arg0_1, = args
    args.clear()
    buf0 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
    extern_kernels.mm(arg0_1, arg0_1, out=buf0)
    del arg0_1
    buf1 = buf0; del buf0  # reuse
    buf2 = torch.ops.aten.max.dim(buf1, 1)
    del buf1
    buf3 = buf2[0]
    del buf2
    return (buf3, )
"""
    line = 'V1121 08:13:51.015000 1 torch/a.py:1] {"%s": {}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, "has_payload": ""}'
    wrapped = f"{work}/wrapped.log"
    open(wrapped, "w").write(trace_logs.log([[line % "inductor_post_grad_graph", post_grad], [line % "inductor_output_code", code]]))
    peak = json.loads(run(wrapped, "peak", "--json"))["pytorch_code"]
    check(peak["peak_bytes"] == 64 + 16 + 32 and peak["held"] == {"temporary": 96, "result": 16} and not peak["unknown"], f"{peak}")
    check([step["bytes"] for step in peak["in_use"]] == [64, 112] and peak["in_use"][1]["step"] == "torch.ops.aten.max.dim", f"{peak}")
    check("PyTorch's own code holds at most 112 bytes" in run(wrapped, "peak"), "the memory of PyTorch's code")
    check("pytorch_code" not in json.loads(run(MODEL, "peak", "--json")), "a graph without PyTorch's code")

    log = write_log(least, 0)
    # The gradient of one input is a tensor subclass: two inner tensors.
    open(f"{work}/inner.py", "w").write("""class inner_f(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[3]"; tangents_1: "f32[3]"; tangents_2: "f32[3]";
        primals_1, tangents_1, tangents_2 = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        sin: "f32[3]" = torch.ops.aten.sin.default(primals_1)
        cos: "f32[3]" = torch.ops.aten.cos.default(primals_1)
        mul: "f32[3]" = torch.ops.aten.mul.Tensor(tangents_1, cos)
        mul_1: "f32[3]" = torch.ops.aten.mul.Tensor(tangents_2, cos)
        return pytree.tree_unflatten([sin, sin, mul, mul_1], self._out_spec)
""")
    check("ours saves 1 value" in run(f"{work}/inner.py", "cut"), "a cut with a gradient of inner tensors")
    # Two files do as well; a backward of another cut is no pair.
    pair = json.loads(run(f"{least}/forward.py", "cut", f"{least}/backward.py", "--json"))
    check(bytes_of(pair["theirs"]) == bytes_of(smallest) and "ours" not in pair, "a pair of files")
    three = json.loads(run(f"{least}/forward.py", "cut", f"{least}/backward.py", f"{usual}/joint.py", "--json"))
    check(bytes_of(three["theirs"]) == bytes_of(smallest) and bytes_of(three["ours"]) == bytes_of(largest), "three files")
    check("does not belong" in run(f"{least}/forward.py", "cut", f"{usual}/backward.py", code=2), "no pair")
    # What is cut already is differentiated only when asked.
    refused = program("aot", log, "--graph", "0_0.aot_forward_graph", "-o", f"{work}/o")
    check(refused.returncode == 2 and "cut out already" in refused.stderr, f"aot of a forward: {refused.stderr}")
    asked = program("aot", log, "--graph", "0_0.aot_forward_graph", "-o", f"{work}/o", "--differentiate")
    check(asked.returncode == 0, f"aot --differentiate: {asked.stderr}")

    # The lines that passes changed are those that the graphs after them differ by.
    passes = json.loads(subprocess.run([partita, "passes", MODEL, "--stage", "post_grad", "--print", "all", "--json"],
                                       capture_output=True, text=True, env=env).stdout)["passes"]
    changed = [i for i, p in enumerate(passes) if p["changed"]]
    if changed:
        first = changed[0]
        check(nodes(MODEL, "changed", str(first), str(first + 1)) != [], "what a pass changed")
    check("there are" in run(MODEL, "changed", "5", "2", code=2), "passes in the wrong order")
    check("no graph break" in run(f"{source}/tests/load/data/trace.log", "breaks"), "a log without a graph break")
    log = f"{work}/broken.log"
    open(log, "w").write('V1121 08:13:51.015000 1 torch/_dynamo/utils.py:1] {"artifact": {"name": '
                         '"dynamo_graph_break_reason", "encoding": "string"}, "frame_id": 0, "frame_compile_id": 1, '
                         '"attempt": 0, "has_payload": ""}\n\tGraph break in user code at model.py:7\n')
    check("model.py:7" in run(log, "breaks"), "a graph break")

    # One line that broke two graphs, with PyTorch's words around it: it is one break, and its stack is none.
    said = lambda name, key, text: (
        'V1121 08:13:51.015000 1 torch/_dynamo/utils.py:1] {"artifact": {"name": "%s"}, "frame_id": %d, '
        '"frame_compile_id": %d, "attempt": 0, "has_payload": ""}\n' % (name, *key) +
        "".join(f"\t{line}\n" for line in text.split("\n")))
    frame = '  File "/home/me/model.py", line 7, in forward\n    print(x)\n    ^^^^^^^^\n'
    broken = ("Graph break in user code at /home/me/model.py:7\nGraph Break Reason: Encountered graph break when attempting "
              "to trace CALL: a function call, e.g. f(x, y):\n\nFailed to trace builtin operator\n  Explanation: Dynamo "
              "does not know it.\n  Hint: Avoid `print`.\n\n  Developer debug context: builtin print\n\n For more "
              'details: https://example.org\n\nUser code traceback:\n  File "/home/me/run.py", line 3, in <module>\n    '
              f"net(x)\n{frame}\nTraceback (most recent call last):\n" + frame.replace("me/model", "torch/x") +
              "torch._dynamo.exc.Unsupported: Failed to trace builtin operator\n  Hint: Avoid `print`.")
    log = f"{work}/twice.log"
    open(log, "w").write("".join(said("dynamo_graph_break_reason", key, broken) for key in [(0, 0), (0, 1)]))
    out = run(log, "breaks")
    check(out.startswith("1 graph break, 2 times in all\n"), out)
    check("/home/me/model.py:7  print(x)\n" in out and "Failed to trace builtin operator\n" in out and
          "2 times, in 0/0, 0/1\n" in out and out.count("Hint: Avoid `print`.") == 1, out)
    check("run.py" not in out and "torch/x" not in out and "Encountered" not in out and "details" not in out, out)

    # What stands around a reason is none; a function that cannot be cut runs in eager mode, and is told once.
    stopped = ("Graph break in user code at /home/me/model.py:7\nGraph Break Reason: Failed to handle graph break "
               "gracefully. Skipping the function and falling back to eager. Graph break encountered:\n\nFailed to trace "
               "builtin operator\n  Explanation: Dynamo does not know it.\n\n*** While handling this graph break, another "
               "graph break occurred: ***\n\ngraph break in loop\n  Explanation: It is in a loop.\n\nStack variable source "
               f"attribution:\n  X() originated from:\n{frame}\nUser code traceback:\n{frame}")
    metrics = lambda key, **facts: (
        'V1121 08:13:51.015000 1 torch/_dynamo/utils.py:1] {"compilation_metrics": %s, "frame_id": %d, '
        '"frame_compile_id": %d, "attempt": 0}\n' % (json.dumps(facts), *key))
    log = f"{work}/stopped.log"
    open(log, "w").write(said("dynamo_graph_break_reason", (0, 0), stopped) +
                         metrics((0, 0), fail_type="Unsupported", fail_reason="Failed to trace builtin operator\n\n"
                                 "*** While handling this graph break, another graph break occurred: ***\n\ngraph break "
                                 "in loop", fail_user_frame_filename="/home/me/model.py", fail_user_frame_lineno=7))
    out = run(log, "breaks")
    check(out == "1 graph break\n  /home/me/model.py:7  print(x)\n    Failed to trace builtin operator; graph break in loop\n"
          "    once, in 0/0: the whole function runs in eager mode\n    Dynamo does not know it.\n", out)

    # Compilations that failed: where, with what, and of which function where the failure has no line.
    open(log, "w").write(
        metrics((0, 0), co_name="f", co_filename="/home/me/model.py", co_firstlineno=5, fail_type=None) +
        said("recompile_reasons", (0, 1), "0/0: k == 1  # y = x * k  # twice  # me/model.py:6 in f (torch/x.py:9 in g)") +
        metrics((0, 1), co_name=None, fail_type="Unsupported", fail_reason="Dynamo recompile limit exceeded\n  Hint: Raise it.") +
        metrics((1, 0), fail_type="ConstraintViolationError", fail_reason=f"Constraints violated\n  - You marked x as "
                f"dynamic.\n\nUser stack:\n{frame}", fail_user_frame_filename=None) +
        metrics((2, 0), fail_type="BackendCompilerFailed", fail_reason="backend='b' raised:\nRuntimeError: broken"))
    out = run(log, "breaks")
    check(out.startswith("no graph break is in it; 3 compilations failed\n"), out)
    check("  f model.py:5\n    Dynamo recompile limit exceeded\n    once, in 0/1: the compilation failed with Unsupported\n"
          "    Hint: Raise it.\n" in out, out)
    check("/home/me/model.py:7  print(x)\n    Constraints violated\n" in out and "    You marked x as dynamic.\n" in out, out)
    check("backend='b' raised: RuntimeError: broken\n" in out, out)
    out = run(log, "recompilations")
    check(out == "1 recompilation\n  f model.py:5  0/1  failed with Unsupported: Dynamo recompile limit exceeded\n"
          "    k == 1, guarded by 0/0\n      me/model.py:6  y = x * k  # twice\n", out)

    # A recompilation has as many guards as there was code before it: plain text for one, a list for several.
    guard = "n == 4      # return x * n  # me/model.py:7 in forward\nUser stack trace:\n" + frame.rstrip()
    listed = json.dumps([f"0/1: {guard}", "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 12"])
    open(log, "w").write(said("recompile_reasons", (0, 1), f"0/0: {guard}") + said("recompile_reasons", (0, 2), listed))
    found = json.loads(run(log, "recompilations", "--json"))
    check(found["answer"] == "2 recompilations" and len(found["rows"]) == 2, f"{found}")
    one, two = (row["text"].split("\n") for row in found["rows"])
    check(one == ["0/1", "    n == 4, guarded by 0/0", "      /home/me/model.py:7  print(x)"], f"{one}")
    check(two[0] == "0/2" and two[3] == "    tensor 'x' size mismatch at index 0. expected 8, actual 12, guarded by 0/0",
          f"{two}")
    check([row["graph"] for row in found["rows"]] == ["0_1.recompile_reasons", "0_2.recompile_reasons"], f"{found}")

    # Two steps within one, of which one runs twice.
    events = [("B", "dynamo", 0), ("B", "trace", 1), ("E", "trace", 2), ("B", "trace", 3), ("E", "trace", 4),
              ("B", "compile", 4), ("E", "compile", 9), ("E", "dynamo", 10)]
    log = f"{work}/times.log"
    open(log, "w").write("".join(
        'V1121 08:13:51.015000 1 torch/_dynamo/utils.py:1] {"chromium_event": {}, "frame_id": 0, "frame_compile_id": 0, '
        '"attempt": 0, "has_payload": ""}\n\t{\n\t"name": "%s",\n\t"ts": %d.5,\n\t"args": {},\n\t"ph": "%s",\n\t"tid": 0\n\t}\n'
        % (name, at * 1000000, phase) for phase, name, at in events))
    times = json.loads(run(log, "times", "--json"))
    check(times["answer"] == "10 s of compiling; most of it, 5 s, in compile", times["answer"])
    check([row["number"] for row in times["rows"]] == [10, 2, 5], f"{times['rows']}")
    check("3.000 s of its own  0/0  dynamo" in times["rows"][0]["text"] and "trace, 2 times" in times["rows"][1]["text"],
          f"{times['rows']}")
    recorded = f"{source}/tests/load/data/trace.log"
    check("no recompilation is" in run(recorded, "recompilations"), "a log without a recompilation")
    log = f"{work}/again.log"
    head = 'V1121 08:13:51.015000 1 torch/_dynamo/utils.py:1] {{"artifact": {{"name": "{}"}}, "frame_id": 0, "frame_compile_id": 1, "attempt": 0, "has_payload": ""}}\n'
    open(log, "w").write(head.format("recompile_reasons") + '\t["0/0: size of x", "0/0: y is None"]\n' +
                         head.format("fx_graph_cache_miss") + "\t{}\n")
    check([row["text"].count("guarded by") for row in json.loads(run(log, "recompilations", "--json"))["rows"]] == [2],
          "all guards of a recompilation")
    check("0/1  fx_graph_cache: miss" in run(log, "caches"), "a cache")
    check("no guards" in run(log, "guards"), "a log without guards")

    listed = re.findall(r"^  ([a-z]+) ", run("--help").split("Questions:")[1], re.M)
    check(set(listed) == {"users", "path", "saved", "cut", "line", "dtype", "breaks", "times", "recompilations",
                           "caches", "guards", "changed", "peak", "collectives", "nan", "inductor"}, f"{listed}")
if wrong:
    sys.exit("\n".join(wrong))
print("ok")
