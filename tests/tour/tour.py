#!/usr/bin/env python3
"""A tour of the window with real keys and mouse: xdotool sends X events to it under Xvfb, and a small window manager
gives it focus. What the window does it writes down itself (partita open --events), and what can be seen of it with
Ctrl+Alt+D. At its end nothing may be left: no process, no scratch, no stall of over 100 ms (250 for another theme).

  tour.py PARTITA SOURCE_DIR [--sanitized]    fewer files and no limits on time
exit 0 if all is well, 1 if not, 77 where a program that the tour needs is missing
"""
import json, os, re, shutil, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from processes import alive, children_of
from trace_logs import log, records

PARTITA, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2]
SANITIZED = "--sanitized" in sys.argv
CORPUS = os.environ.get("PARTITA_CORPUS", f"{SOURCE}/../shared/corpus")
SAMPLE = os.path.abspath(f"{SOURCE}/resources/samples/mlp/program.pt2")
PATIENCE = 240 if SANITIZED else float(os.environ.get("TOUR_PATIENCE", 60))  # seconds, for anything
# What the window's thread may work at a time. Another theme restyles all 800 widgets, which Qt does in one piece.
STALL_MS, RESTYLE_MS = 100, 250
PROMPT_MS, BUSY_MS = 200, 1500  # cancel and quit: the quickest of several, and any of them on a busy machine
FILES = ["big/gpt48/joint.py", "big/gpt12/forward.py", "models/gpt2/trace", "models/swin/program.pt2",
         "models/lstm/graphs/joint.py", "models/mlp/debug", "models/mlp/dumped", "models/mlp/io.safetensors",
         "extra/cond/program.pt2", "extra/symbolic/program.pt2", "logs/simple.log", "logs/simple_corrupted_json.log"]
TEXTS = {"models/mlp/io.safetensors"}  # these hold no graph


class Failed(Exception):
    pass


current = None  # the window that is open
quits = []  # milliseconds that each took, and that the processor worked for it
cancels = []  # milliseconds from the key to the end of the job and of its processes


def check(ok, what):
    if not ok:
        raise Failed(what)


def until(condition, what, seconds=None):
    end = time.monotonic() + (seconds or PATIENCE)
    while True:
        found = condition()
        if found:
            return found
        check(time.monotonic() < end, f"waited in vain: {what}")
        time.sleep(0.01)


def leaks_in_qt_only(report):
    """Whether all that LeakSanitizer found is Qt's data of a thread: its D-Bus thread, which ends with the process, may
    not come to free them. The suppressions cannot name this, for without frame pointers the functions are unknown."""
    if "LeakSanitizer: detected memory leaks" not in report:
        return False
    leaks = re.findall(r"(?:Direct|Indirect) leak of .*\n((?: +#\d.*\n)+)", report)
    frames = [re.findall(r"#\d+ 0x[0-9a-f]+ +(.*)", leak) for leak in leaks]
    return bool(frames) and all("operator new" in of[0] or "malloc" in of[0] for of in frames) and all(
        "libQt6Core" in frame or "<unknown module>" in frame for of in frames for frame in of[1:])


class Window:
    """partita open, its events, and the hands on its keyboard and mouse."""

    def __init__(self, env, work, *options):
        global current
        current = self
        self.log = f"{work}/events"
        if os.path.exists(self.log):
            os.remove(self.log)
        self.env, self.work = env, work
        self.begun = time.monotonic()
        self.process = subprocess.Popen([PARTITA, "open", *options, "--events", self.log], env=env,
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.events, self.read, self.mark = [], 0, 0
        self.id = until(self.appeared, "the window", PATIENCE)
        self.hands("windowactivate", "--sync", self.id)

    def appeared(self):
        check(self.process.poll() is None, f"the window ended at once: {self.process.poll()}")
        found = subprocess.run(["xdotool", "search", "--onlyvisible", "--pid", str(self.process.pid), "--name", "Partita"],
                               env=self.env, capture_output=True, text=True).stdout.split()
        return found[-1] if found else None

    def hands(self, *words):
        done = subprocess.run(["xdotool", *map(str, words)], env=self.env, capture_output=True, text=True)
        check(done.returncode == 0, f"xdotool {words}: {done.stderr}")

    def refresh(self):
        if not os.path.exists(self.log):
            return
        with open(self.log) as log:
            log.seek(self.read)
            for line in iter(log.readline, ""):
                if not line.endswith("\n"):
                    break
                self.events.append(json.loads(line))
                self.read += len(line.encode())

    def found(self, event, fields):
        self.refresh()
        for e in self.events[self.mark:]:
            if e["event"] == event and all(
                    want(e[name]) if callable(want) else want in str(e[name]) for name, want in fields.items()):
                return e

    def expect(self, event, seconds=None, **fields):
        """The first such event since the last key or click."""
        return until(lambda: self.found(event, fields) or self.died(), f"{event} {fields}; last {self.events[-4:]}",
                     seconds)

    def died(self):
        check(self.process.poll() is None, f"the window died: {self.process.poll()}")

    def idle(self):
        def quiet():
            self.died()
            self.refresh()
            started = {e["id"] for e in self.events if e["event"] == "started"}
            return started <= {e["id"] for e in self.events if e["event"] == "gone"}
        until(quiet, "idle")

    def act(self, *words):
        self.refresh()
        self.mark = len(self.events)
        self.hands(*words)

    def key(self, *keys):
        self.act("key", "--delay", 1, *keys)

    def type(self, text):
        self.act("type", "--delay", 1, text)

    def click(self, item, button=1, repeat=1):
        x, y, width, height = item["place"]
        self.act("mousemove", x + width // 2, y + height // 2, "click", "--repeat", repeat, "--delay", 20, button)

    def screen(self):
        def asked():  # again where the key was pressed while no window had the focus
            self.key("ctrl+alt+d")
            end = time.monotonic() + 1
            while time.monotonic() < end:
                if (found := self.found("screen", {})) or self.died():
                    return found
                time.sleep(0.005)
        return until(asked, "what is on the screen")

    def see(self, kind, name, exact=False):
        """Something on the screen, waited for."""
        def there():
            for item in self.screen()["items"]:
                if item["kind"] == kind and (item["name"] == name if exact else name in item["name"]):
                    return item
        return until(there, f"{kind} '{name}' on the screen")

    def command(self, name):
        """By the palette, as a user who does not know the key."""
        self.key("ctrl+k")
        self.see("field", "")
        self.type(name)
        self.see("row", name)
        self.key("Return")

    def open(self, path):
        """By the file dialog. Its completion is slower than a quick hand, hence the second go."""
        def chosen():
            self.key("ctrl+o")
            self.see("label", "File &name")
            self.type(os.path.dirname(path) + "/")
            for _ in range(10):  # until its completion has read the folder
                if any(i["kind"] == "row" and os.path.basename(path) in i["name"] for i in self.screen()["items"]):
                    break
            self.key("Return")  # goes to the folder
            for _ in range(20):  # rows move while the folder is being read
                rows = [i for i in self.screen()["items"] if i["kind"] == "row" and
                        i["name"].startswith(os.path.basename(path) + "\t")]
                if rows:
                    self.click(rows[0])
                    if any(i["kind"] == "field" and i["name"] == os.path.basename(path)
                           for i in self.screen()["items"]):
                        return True
            self.key("Escape")
        until(chosen, f"{path} chosen in the dialog")
        self.click(self.see("button", "&Open", exact=True))

    def state(self):
        """What the last screen held, for the report of a failure."""
        screens = [e for e in self.events if e["event"] == "screen"]
        lines = [f"\n    {e}" for e in self.events[-6:] if e["event"] != "screen"]
        if screens:
            last = screens[-1]
            lines.append(f"\n    {last['title']}; page {last['page']}, focus {last['focus']}, jobs {last['jobs']}")
            lines += [f"\n    {item['kind']} {item['name'][:90]!r}" for item in last["items"]
                      if item["kind"] not in ("menu", "tab", "rows", "button")][:60]
        return "".join(lines)

    def worked_ms(self):
        """Of the processor, for the window and the children that it has waited for."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) * 1e3 / os.sysconf("SC_CLK_TCK")

    def cancel(self, name):
        """Until the job and the processes that it started are gone."""
        started = children_of(self.process.pid)
        begun = time.monotonic()
        self.key("ctrl+period")
        self.expect("gone", name=name)
        until(lambda: not any(map(alive, started)), f"children {started} left", 5)
        took = (time.monotonic() - begun) * 1e3
        cancels.append(took)
        check(SANITIZED or took < BUSY_MS, f"cancelling took {took:.0f} ms")

    def quit(self):
        started = children_of(self.process.pid)
        begun, worked = time.monotonic(), self.worked_ms()

        def ended():
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            return pid and (os.waitstatus_to_exitcode(status), (usage.ru_utime + usage.ru_stime) * 1e3)
        self.key("ctrl+q")
        self.process.returncode, all_work = until(ended, "the end after ctrl+q")
        took, code = (time.monotonic() - begun) * 1e3, self.process.returncode
        said = self.process.stderr.read()
        check(code == 0 or leaks_in_qt_only(said), f"exit code {code}: {said[-2000:]}")
        quits.append((took, all_work - worked))
        check(SANITIZED or took < BUSY_MS, f"quitting took {took:.0f} ms")
        until(lambda: not any(map(alive, started)), f"children {started} left", 5)
        self.refresh()
        return self.events


def sample(env, work):
    """One program through everything: joint, selection, pins, passes, comparison, values, minifier, compiler, history."""
    w = Window(env, work, "--plant", "aten.gelu.default:wrong")
    w.click(w.see("button", "exported program"))
    program = w.expect("painted", cards=lambda cards: cards > 10)["key"]
    w.key("ctrl+j")
    w.expect("shown", key="joint")
    w.idle()
    check("joint" in w.screen()["title"], "the title does not name the joint graph")

    w.key("Home", "Tab")  # through the nodes
    w.expect("selected", node=lambda name: name)
    cards = [item for item in w.screen()["items"] if item["kind"] == "card"]
    check(len(cards) > 10, f"only {len(cards)} cards in view")
    w.click(next(card for card in cards if card["name"] == "gelu"))
    w.expect("selected", node="gelu")
    w.idle()
    before = w.see("label", " saved, ")["name"]
    w.key("r")
    until(lambda: w.see("label", " saved, ")["name"] != before, f"the pin changes the cut: {before}")
    w.key("u")
    until(lambda: w.see("label", " saved, ")["name"].split(" (")[0] == before.split(" (")[0],
          f"the released pin leaves no trace: {before}")

    w.key("ctrl+p")
    w.expect("done", name="Passes")
    w.idle()
    for step in range(4):
        w.key("ctrl+shift+Right")
        w.see("label", "›  after ")
    w.key("ctrl+g")
    until(lambda: "after" not in w.screen()["title"], "the picture without a pass")

    w.key("ctrl+r")
    w.expect("done", name="ompare")
    w.idle()
    rows = [item["name"] for item in w.screen()["items"] if item["kind"] == "row"]
    check(any("gelu" in row for row in rows), f"the planted fault is no row: {rows[:6]}")
    w.key("alt+3")
    w.key("ctrl+e")
    w.expect("page", name="Tensor")
    w.idle()
    w.key("Escape")
    w.expect("page", name="Graph")

    w.key("ctrl+m")
    w.expect("page", name="Minifier")
    w.click(w.see("button", "Minify", exact=True))
    w.expect("done", name="Minify ")
    w.idle()
    w.see("label", "call")
    w.key("Escape")
    w.expect("page", name="Graph")

    w.key("ctrl+t")  # the nodes' times, as a colouring
    w.idle()
    w.see("button", "Colour by time")
    w.click(w.see("row", "exported program"))  # in the tree
    w.expect("shown", key=program)
    w.key("ctrl+shift+r")
    w.idle()
    w.expect("done", name="Run exported program")
    w.key("ctrl+h")
    w.idle()
    w.see("row", "run")

    w.key("alt+Left")
    w.expect("shown", key="joint")
    w.key("alt+Right")
    w.expect("shown", key=program)
    w.key("ctrl+w")
    w.expect("page", name="")
    w.see("label", "Open a graph")
    return w.quit()


def files(env, work):
    """A first view of files of every kind: something is there, and the window can be left at once."""
    if not os.path.isdir(CORPUS):
        return []
    events = []
    for name in FILES[:3] if SANITIZED else FILES:
        path = os.path.realpath(f"{CORPUS}/{name}")
        w = Window(env, work, path)
        painted = w.expect("painted", key=path)
        check(name in TEXTS or painted["cards"] > 0, f"{name}: nothing on the screen")
        events += w.quit()
    problems = [e["text"] for e in events if e["event"] == "problem" and "could not be read" not in e["text"]
                and "all was read" not in e["text"]]
    check(not problems, f"problems were shown: {problems}")
    return events


def look(env, work):
    """The dialog, two themes, and a small window, all of which is in reach."""
    w = Window(env, work)
    w.open(SAMPLE)
    w.expect("painted", key=SAMPLE)
    for theme in "dark", "light":
        w.command(f"Theme: {theme}")
        until(lambda: w.screen()["dark"] == (theme == "dark"), f"the {theme} theme")
    w.hands("windowsize", "--sync", w.id, 1024, 700)
    shown = until(lambda: (s := w.screen())["place"][2:] == [1024, 700] and s, "1024x700")
    tree = next(item for item in shown["items"] if item["of"] == "Artefacts" and item["kind"] == "rows")
    check(tree["place"][2] >= 150 and tree["place"][3] > 200, f"the tree of files is {tree['place'][2:]}")
    for tab in "Compare", "Passes", "Log":
        w.click(w.see("tab", tab))
    w.click(w.see("row", "mlp/program.pt2"), button=3)
    w.key("Up", "Return")  # the last of its menu closes the file
    w.see("label", "Open a graph")
    return w.quit()


def joint_of_sample(env, work):
    out = f"{work}/joint"
    if not os.path.isdir(out):
        subprocess.run([PARTITA, "aot", SAMPLE, "-o", out], env=env, check=True, stdout=subprocess.DEVNULL)
    return f"{out}/joint.py"


def crash(env, work):
    """Compiled code that crashes is a row, and the window goes on."""
    w = Window(env, work, joint_of_sample(env, work), "--plant", "aten.gelu.default:crash")
    w.expect("painted")
    w.key("ctrl+r")
    w.expect("started", name="ompare")
    w.idle()
    w.see("row", "signal 11")
    return w.quit()


def hang(env, work):
    """Compiled code that hangs is cancelled at once, also by closing the window."""
    w = Window(env, work, joint_of_sample(env, work), "--plant", "aten.gelu.default:hang")
    w.expect("painted")
    w.idle()

    def compare():
        w.key("ctrl+r")
        w.expect("started", name="ompare")
        until(lambda: children_of(w.process.pid), "the worker")
        time.sleep(0.3)  # it hangs a few milliseconds after its start
        check(children_of(w.process.pid), "the worker does not hang")
    for _ in range(4):
        compare()
        w.cancel("ompare")
        check(w.screen()["jobs"] == [], "a job is left")
    compare()
    return w.quit()


def options(env, work):
    """Each start option acts in the window as for a screenshot."""
    joint = joint_of_sample(env, work)
    w = Window(env, work, joint, "--select", "gelu", "--theme", "dark", "--view", "passes", "--overlay", "kernel")
    w.expect("painted")
    w.idle()
    shown = w.screen()
    check(shown["dark"] and shown["node"] == "gelu", f"theme or node: {shown['dark']} {shown['node']}")
    w.see("button", "Colour by fused kernel")
    w.quit()
    w = Window(env, work, os.path.dirname(joint), "--graph", "backward", "--view", "minify")
    w.expect("shown", key="#backward")
    w.idle()
    check(w.screen()["page"] == "Minifier", "--view minify is not shown")
    w.quit()
    # A screenshot does not wait for a comparison that hangs.
    picture = f"{work}/after.png"
    done = subprocess.run([PARTITA, "open", joint, "--plant", "aten.gelu.default:hang", "--view", "compare", "--after", "1",
                           "--screenshot", picture], env=env, timeout=PATIENCE)
    check(done.returncode == 0 and os.path.getsize(picture) > 1000, "no picture --after 1 s of a hang")
    os.remove(picture)
    w = Window(env, work, joint, "--view", "run", "--compiler", "debug_nop")
    w.expect("painted")
    w.idle()
    w.see("label", "10 results; ")
    w.see("menu", "Graph", exact=True)
    w.key("alt+g")
    w.see("menu", "Run and compare")
    w.key("Escape", "Escape")
    return w.quit()


def rows_of(w):
    return [item["name"] for item in w.screen()["items"] if item["kind"] == "row"]


def logs(env, work):
    """A folder of two ranks: when their steps ran, what differs between them, and what a question answers."""
    folder = f"{work}/ranks"
    os.makedirs(folder, exist_ok=True)
    found = records(open(f"{SOURCE}/resources/samples/training/training.log").read())
    planted = [[line, payload and payload.replace("aten.relu.default", "aten.sigmoid.default")] for line, payload in found]
    check(planted != found, "nothing to plant a difference in")
    for rank, of in enumerate([found, planted]):
        with open(f"{folder}/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", "w") as out:
            out.write(log(of))
    w = Window(env, work, folder)
    w.expect("painted", cards=lambda cards: cards > 0)
    w.idle()

    w.click(w.see("button", "Times", exact=True))
    w.expect("page", name="Times of compiling")
    w.idle()
    w.see("label", " of compiling in rank ")
    until(lambda: w.screen()["focus"] == "Times of compiling", "the time line has the keys")
    w.key("Down", "Down", "z")  # into the steps, and closer
    w.see("label", " of its own")
    w.click(w.see("button", "Its graph"))
    w.expect("shown", key="rank_")
    w.idle()
    check(w.screen()["page"] == "Graph", "the step leads to no graph")

    w.click(next(item for item in w.screen()["items"] if item["of"] == "Filter artefacts"))
    w.type("rank 1 joint")
    until(lambda: not any("rank 0" in row for row in rows_of(w)), "the tree is filtered")
    w.key("ctrl+a", "Delete")

    w.command("Compare what is open")
    w.expect("done", name="Compare ")
    w.idle()
    until(lambda: any("sigmoid" in row for row in rows_of(w)), "the planted difference is a row")

    w.command("he time of compiling went")
    w.expect("done", name="Answer: times")
    w.see("label", " of compiling in rank ")
    return w.quit()


def depth(env, work):
    """Kernels down to the assembly, the rewrites of a pass with the numbers, and the values of several columns."""
    joint = joint_of_sample(env, work)
    w = Window(env, work, joint, "--plant", "aten.gelu.default:wrong", "--against", "planted", "--against", "f64")
    w.expect("painted")
    w.idle()
    w.key("ctrl+r")
    w.expect("done", name="ompare")
    w.idle()
    w.key("ctrl+e")
    w.expect("page", name="Tensor")
    w.idle()
    w.see("label", "planted: ")
    w.see("label", "f64: ")
    w.key("Escape")

    w.command("Run the passes and check the numbers")
    w.expect("done", name="Passes")
    w.idle()
    until(lambda: any("equal" in row for row in rows_of(w)), "how far passes moved the numbers")
    w.key("ctrl+shift+Left", "ctrl+shift+Right")
    w.click(w.see("row", "rewrite_joint"))
    w.idle()
    w.click(w.see("button", "This pass"))
    w.see("menu", "Show its rewrites")
    w.key("Down", "Return")
    w.idle()
    w.see("label", "rewrite 1  ")
    w.key("ctrl+Right")
    w.idle()
    w.see("label", "rewrite 2  ")
    w.key("ctrl+g")

    w.key("ctrl+shift+k")
    w.expect("page", name="Kernels")
    w.expect("done", name="Plan the kernels")
    w.idle()
    check(len(rows_of(w)) > 5, f"few kernels: {rows_of(w)}")
    w.key("Escape")
    w.expect("page", name="Graph")
    return w.quit()


PARTS = [sample, logs, depth, files, look, crash, hang, options]
if os.environ.get("TOUR"):  # some parts only, for whoever writes them
    PARTS = [part for part in PARTS if part.__name__ in os.environ["TOUR"].split(",")]


def managed(wm, env):
    check(wm.poll() is None, f"the window manager ended at once: {wm.poll()}")
    return subprocess.run(["xdotool", "get_num_desktops"], env=env, capture_output=True).returncode == 0


def main():
    missing = [name for name in ("Xvfb", "xdotool", "openbox") if not shutil.which(name)]
    if missing:
        print(f"skipped: no {', '.join(missing)}")
        return 77
    with tempfile.TemporaryDirectory() as work:
        read, write = os.pipe()
        # -noreset: without it the server starts anew, and drops who is just connecting, when its last client leaves
        xvfb = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x1000x24", "-nolisten", "tcp",
                                 "-noreset"], pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        display = os.read(read, 16).decode().strip()
        check(display, "Xvfb ended at once")
        os.mkdir(f"{work}/run", 0o700)
        os.mkdir(f"{work}/tmp")
        with open(f"{work}/leaks", "w") as leaks:
            leaks.write("leak:libdbus-1\n")  # the library keeps its connections
        env = {**os.environ, "DISPLAY": f":{display}", "QT_QPA_PLATFORM": "xcb", "XDG_CONFIG_HOME": f"{work}/config",
               "XDG_RUNTIME_DIR": f"{work}/run", "TMPDIR": f"{work}/tmp", "PARTITA_STORE": f"{work}/store.sqlite",
               "LSAN_OPTIONS": f"suppressions={work}/leaks:print_suppressions=0"}
        wm = subprocess.Popen(["openbox", "--sm-disable"], env=env, stderr=subprocess.DEVNULL)
        begun, failures, stalls = time.monotonic(), [], []
        try:
            until(lambda: managed(wm, env), "the window manager")
            for part in PARTS:
                at = time.monotonic()
                try:
                    events = part(env, f"{work}")
                    limit = RESTYLE_MS if part is look else STALL_MS
                    stalls += [{**e, "limit": limit} for e in events if e["event"] == "stall"]
                except Failed as why:
                    failures.append(f"{part.__name__}: {why}{current.state()}")
                    current.process.kill()
                    current.process.wait()
                    shutil.rmtree(f"{work}/tmp")
                    os.mkdir(f"{work}/tmp")
                print(f"{part.__name__}: {time.monotonic() - at:.1f} s")
                for pid in children_of(os.getpid()):
                    if pid not in (xvfb.pid, wm.pid) and alive(pid):
                        failures.append(f"{part.__name__}: process {pid} is left")
                        os.kill(pid, signal.SIGKILL)
                left = os.listdir(f"{work}/tmp")
                if left:
                    failures.append(f"{part.__name__}: scratch is left: {left[:4]}")
                    shutil.rmtree(f"{work}/tmp")
                    os.mkdir(f"{work}/tmp")
        finally:
            wm.kill()
            xvfb.kill()
            wm.wait()
            xvfb.wait()
        if not SANITIZED:
            busy = max(1, os.getloadavg()[0] / os.cpu_count())  # the limits are those of a quiet machine
            quickest, least_work = map(min, zip(*quits)) if quits else (0, 0)
            if cancels and min(cancels) > PROMPT_MS * busy:
                failures.append(f"the quickest cancel took {min(cancels):.0f} ms")
            if quickest > PROMPT_MS * busy or least_work > PROMPT_MS:
                failures.append(f"the quickest end of a window took {quickest:.0f} ms, {least_work:.0f} of work")
            # What the window's thread works takes as long on a busy machine; the display that it waits for does not.
            stalls = [e for e in stalls if e["cpu_ms"] > e["limit"] or e["ms"] > e["limit"] * busy]
            failures += [f"the window did not answer for {e['ms']:.0f} ms ({e['cpu_ms']:.0f} of work), in {e['in']}, which took "
                         f"{e['slowest_ms']:.0f} ms" for e in stalls]
        for failure in failures:
            print("FAIL", failure)
        print("ends of windows, ms (of work):", ", ".join(f"{took:.0f} ({work:.0f})" for took, work in quits))
        print("cancels of a hang, ms:", ", ".join(f"{took:.0f}" for took in cancels))
        print(f"{len(PARTS)} parts, {time.monotonic() - begun:.0f} s, {len(stalls)} stalls, {len(failures)} failures")
        return 1 if failures else 0


sys.exit(main())
