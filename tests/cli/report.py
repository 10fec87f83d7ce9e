#!/usr/bin/env python3
"""`partita report` writes one page that is well formed, holds no foreign markup, asks no network, and stays small.
report.py PARTITA SOURCE_DIR [browser]: with `browser` the page is opened in Chromium and clicked through; exit code 77
when that is not there."""
import glob, html.parser, json, os, shutil, sqlite3, subprocess, sys, tempfile, time, urllib.request

partita, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODEL, IO = f"{source}/resources/samples/mlp/program.pt2", f"{source}/resources/samples/mlp/io.safetensors"
EMPTY = {"meta", "input", "br"}
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.data, self.scripts = [], [], [], "", 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        check(self.open and self.open[-1] == tag, f"</{tag}> within {self.open[-3:]}")
        if self.open:
            self.open.pop()

    def handle_data(self, text):
        if self.open and self.open[-1] == "script" and text.startswith("{"):
            self.data += text


def report(folder, *words, code=0):
    out = f"{folder}/page.html"
    env = {**os.environ, "PARTITA_STORE": f"{folder}/store.sqlite"}
    done = subprocess.run([partita, "report", *words, "-o", out], capture_output=True, text=True, env=env)
    check(done.returncode == code, f"{words}: exit {done.returncode}, {done.stderr}")
    return open(out).read() if code == 0 and done.returncode == 0 else done.stderr


def pdf(folder, *words):
    """Its bytes, and the number of its pages."""
    out = f"{folder}/summary.pdf"
    env = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "QT_QPA_PLATFORM")}
    done = subprocess.run([partita, "report", *words, "-o", out], capture_output=True, text=True,
                          env={**env, "PARTITA_STORE": f"{folder}/store.sqlite"})
    check(done.returncode == 0 and done.stderr == "", f"{words}: exit {done.returncode}, {done.stderr}")
    data = open(out, "rb").read()
    return data, data.count(b"/Type /Page\n")


def facts(text, limit=5_000_000):
    check(len(text.encode()) < limit, f"{len(text.encode())} bytes")
    page = Page(text)
    check(not page.open, f"left open: {page.open}")
    check(page.tags.count("script") == 2 and page.tags.count("style") == 1, f"{page.tags.count('script')} scripts")
    check({tag for tag in page.tags} <= {
        "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "nav", "a", "main", "section", "table",
        "tbody", "tr", "th", "td", "noscript", "p", "div", "select", "input", "span", "button", "svg", "pre", "script"},
        f"foreign tags: {sorted(set(page.tags))}")
    for tag, name, value in page.attributes:
        check(name not in ("src", "srcset", "data", "action") and not name.startswith("on"), f"<{tag} {name}={value}>")
        check(name != "href" or value.startswith("#"), f"a link to {value}")
    policy = [value for tag, name, value in page.attributes if name == "content" and "default-src" in value]
    check(policy and policy[0].startswith("default-src 'none'"), "no policy against the network")
    return json.loads(page.data)


class Browser:
    """The little of WebDriver that the test needs."""

    def __init__(self):
        self.driver = subprocess.Popen(["chromedriver", "--port=9517"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            try:
                if self.ask("GET", "/status", url="")["ready"]:
                    break
            except OSError:
                time.sleep(0.1)
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1440,900"]}
        made = self.ask("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}}, "/session")
        self.session = "/session/" + made["sessionId"]

    def ask(self, method, path, body=None, url=None):
        url = self.session if url is None else url
        request = urllib.request.Request("http://127.0.0.1:9517" + url + path, method=method,
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def run(self, script):
        return self.ask("POST", "/execute/sync", {"script": script, "args": []})

    def element(self, css):
        return "/element/" + next(iter(self.ask("POST", "/element", {"using": "css selector", "value": css}).values()))

    def click(self, css):
        self.ask("POST", self.element(css) + "/click", {})

    def type(self, css, text):
        self.ask("POST", self.element(css) + "/value", {"text": text})

    def close(self):
        try:
            self.ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()


def click_through(folder):
    report(folder, f"{source}/resources/samples/gpt2/" + os.path.basename(GPT2), "--random-weights", "0")
    browser = Browser()
    try:
        browser.ask("POST", "/url", {"url": f"file://{folder}/page.html"})
        check(browser.run("return document.body.dataset.ready") == "yes", "the page's program did not end")
        cards = browser.run("return document.querySelectorAll('.card').length")
        check(cards > 50, f"{cards} cards")
        browser.type("#search", "mm\ue007")
        check("found" in browser.run("return document.getElementById('found').textContent"), "the search says nothing")
        check(browser.run("return document.querySelectorAll('.card.hit').length") > 0, "the search finds nothing")
        check(browser.run("return document.querySelectorAll('.card.on').length") == 1, "Enter goes to no hit")
        check(browser.run("return document.querySelectorAll('#code .on').length") == 1, "the code is not in step")
        before = browser.run("return document.querySelector('#picture g').getAttribute('transform')")
        browser.run("const p = document.getElementById('picture'); p.dispatchEvent(new WheelEvent('wheel',"
                    "{deltaY: -200, clientX: 200, clientY: 300, cancelable: true, bubbles: true}))")
        check(before != browser.run("return document.querySelector('#picture g').getAttribute('transform')"), "no zoom")
        browser.click("#fold")
        folds = browser.run("return document.querySelectorAll('.fold').length")
        check(folds > 0 and browser.run("return document.querySelectorAll('.card.gone').length") > 0, "nothing folds")
        browser.click("#unfold")
        check(browser.run("return document.querySelectorAll('.card.gone').length") == 0, "it does not unfold")
        check("activations" in browser.run("return document.getElementById('cut').textContent"), "no cut to read")
        browser.click("#cut th:nth-child(2)")
        loaded = browser.run("return performance.getEntriesByType('resource').map(e => e.name)")
        check(loaded == [], f"the page loads {loaded}")
        problems = [e["message"] for e in browser.ask("POST", "/se/log", {"type": "browser"}) if e["level"] == "SEVERE"]
        check(problems == [], f"{problems}")
    finally:
        browser.close()


GPT2 = (glob.glob(f"{source}/resources/samples/gpt2/*.pt2") + glob.glob(f"{source}/resources/samples/gpt2/*"))[0]
with tempfile.TemporaryDirectory() as folder:
    if sys.argv[3:] == ["browser"]:
        if not (shutil.which("chromedriver") and (shutil.which("chromium") or shutil.which("google-chrome"))):
            print("skipped: chromium and chromium-driver are not installed")
            sys.exit(77)
        click_through(folder)
    else:
        data = facts(report(folder, MODEL, "--inputs", IO))
        check({g["id"] for g in data["graphs"]} >= {"made/joint", "made/forward", "made/backward"}, "the graphs")
        for g in data["graphs"]:
            check(len(g["cards"]) > 0 and all(0 <= a < len(g["cards"]) for l in g["links"] for a in l[:2]), g["id"])
        check(data["cut"]["saved"] and all(s["why"] for s in data["cut"]["saved"]), "the cut without reasons")
        check(any(p.get("diff") for p in data["passes"]), "no pass with a diff")
        check(any(s.get("code") for k in data["kernels"] for s in k["steps"]), "no code of kernels")
        check(data["comparison"] and all(r["ok"] for r in data["comparison"]), "the comparison")

        # What the user wrote at nodes of the file, and of what was made of it.
        store = sqlite3.connect(f"{folder}/store.sqlite")
        program = next(g["id"] for g in data["graphs"] if not g["id"].startswith("made/"))
        check("notes" not in data, f"notes that nobody wrote: {data.get('notes')}")
        with store:
            for graph, node, text in (program, "gelu", "why is this <b>saved</b>?"), (f"{program}/joint", "gelu", ""):
                store.execute("INSERT INTO notes(at, path, graph, node, text) VALUES(0, ?, ?, ?, ?)",
                              (os.path.realpath(MODEL), graph, node, text))
        store.close()
        data = facts(report(folder, MODEL))
        check([(n["node"], n["text"]) for n in data["notes"]] == [("gelu", "why is this <b>saved</b>?"), ("gelu", "")],
              f"notes: {data['notes']}")
        check({g["id"]: g["notes"] for g in data["graphs"] if g["notes"]} ==
              {program: {"gelu": "why is this <b>saved</b>?"}, "made/joint": {"gelu": ""}}, "notes at graphs")

        # The summary to print: more tables take more pages, and nothing of it is loaded from elsewhere.
        small, few = pdf(folder, MODEL)
        large, more = pdf(folder, MODEL, "--inputs", IO, "--train")
        check(small.startswith(b"%PDF-") and small.rstrip().endswith(b"%%EOF"), "no PDF")
        check(1 <= few <= more <= 5 and len(small) < len(large) < 200_000, f"{few} and {more} pages, {len(large)} bytes")
        check(b"/URI" not in large and b"/JavaScript" not in large, "the PDF asks for something")

        # An error that is infinite is a text, since JSON has no number for it.
        raw = open(IO, "rb").read()
        size = int.from_bytes(raw[:8], "little")
        begin, end = (8 + size + at for at in json.loads(raw[8:8 + size])["output.0"]["data_offsets"])
        open(f"{folder}/zeros.safetensors", "wb").write(raw[:begin] + bytes(end - begin) + raw[end:])
        stored = facts(report(folder, MODEL, "--inputs", f"{folder}/zeros.safetensors"))["comparison"][1]
        [zero] = [r for r in stored["rows"] if r["name"] == "output.0"]
        check(zero["max_rel"] == "inf" and not zero["ok"] and not stored["ok"], f"{zero}")
        pdf(folder, MODEL, "--inputs", f"{folder}/zeros.safetensors")

        gpt2 = facts(report(folder, GPT2))
        print(f"gpt2: {os.path.getsize(f'{folder}/page.html')} bytes, {len(gpt2['graphs'])} graphs")
        log = facts(report(folder, f"{source}/tests/load/inductor.log"))
        check(log["inductor"] and log["inductor"][0]["found"] > 0, "inductor's kernels")

        # What a log says of its compilations.
        subprocess.run([partita, "run", MODEL, "--inputs", IO, "--backend", "cpu", "--trace", f"{folder}/trace"], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "PARTITA_STORE": f"{folder}/store.sqlite"})
        traced = facts(report(folder, f"{folder}/trace"))
        check(any(t["what"] == "inductor_compile" and t["seconds"] > 0 for t in traced.get("compile_times", [])),
              f"compile times: {traced.get('compile_times')}")
        check(any(g["id"].endswith("dynamo_guards") and "check_tensor" in g["text"] for g in traced.get("guards", [])), "guards")

        # Why a log's programs were compiled again, and where the time went.
        log = f"{folder}/again.log"
        head = ('V1121 08:13:51.015000 1 torch/x.py:1] {"artifact": {"name": "recompile_reasons"}, "frame_id": 0, '
                '"frame_compile_id": 1, "attempt": 0, "has_payload": ""}\n')
        event = ('V1121 08:13:51.015000 1 torch/x.py:1] {"chromium_event": {}, "frame_id": 0, "frame_compile_id": 1, '
                 '"attempt": 0, "has_payload": ""}\n\t{\n\t"name": "trace",\n\t"ts": %d,\n\t"ph": "%s",\n\t"tid": 0\n\t}\n')
        open(log, "w").write(head + '\t["0/0: size of <x>"]\n' + event % (1_000_000, "B") + event % (3_000_000, "E"))
        again = facts(report(folder, log))
        check(again["facts"] == [{"title": "Recompilations", "rows": [["0/1", "", "guard that failed", "0/0: size of <x>"]]}] and
              again["steps"] == [["trace", 2, 2, 1]], f"{again.get('facts')} {again.get('steps')}")
        pdf(folder, log)

        # Text of files is data: it ends no element and begins none.
        bad = "</script><script>alert(1)</script><img src=x onerror=alert(2)>]]>&lt;\u2028<!--"
        hostile = f"{folder}/a<b>&\"'<script>.py"
        open(hostile, "w").write(f"""class M(torch.nn.Module):
    def forward(self, x: "f32[4, 4]"):
        # File: /home/{bad}.py:3 in forward, code: {bad}
        relu: "f32[4, 4]" = torch.ops.aten.relu.default(x)
        mm: "f32[4, 4]" = torch.ops.aten.mm.default(relu, x)
        return (mm,)
""")
        text = report(folder, hostile)
        data = facts(text)
        check(any("alert(1)" in g["code"] or any("alert(1)" in s for s in g["sources"].values()) for g in data["graphs"]),
              "the hostile text is not on the page at all")
        check("alert(1)</script>" not in text and "<img" not in text, "markup of a file is on the page")
        os.makedirs(f"{folder}/repro")
        for name in ("README.md", "graph.py", "repro.py"):
            open(f"{folder}/repro/{name}", "w").write(bad)
        data = facts(report(folder, MODEL, "--repro", f"{folder}/repro"))
        check([f["text"] for f in data["repro"]] == [bad] * 3, "the repro")
        check("nothing" in report(folder, f"{folder}/nothing", code=2), "a file that is not there")
if wrong:
    sys.exit("\n".join(wrong))
print("ok")
