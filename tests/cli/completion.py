"""Completion of each shell and the manual page name every verb and its options; bash completes by it."""

import shutil
import subprocess
import sys

PARTITA = sys.argv[1]


def partita(*words):
    return subprocess.run([PARTITA, *words], capture_output=True, text=True)


def completed(*words):
    """What bash offers for the last word."""
    script = partita("completion", "bash").stdout
    line = " ".join(f"'{word}'" for word in words)
    script += f"\nCOMP_WORDS=(partita {line}); COMP_CWORD={len(words)}; _partita; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd="/")
    assert not done.stderr, done.stderr
    return done.stdout.split()


verbs = [line.split()[0] for line in partita("--help").stdout.split("Subcommands:")[-1].splitlines()
         if line.startswith("  ") and line.strip() and line[2] != " "]
assert "open" in verbs and "completion" in verbs, verbs
for what in ("bash", "zsh", "fish", "man"):
    text = partita("completion", what).stdout
    for verb in verbs:
        assert verb in text, (what, verb)
assert completed("comp") == ["compare", "compile", "completion"], completed("comp")
assert completed("open", "--th") == ["--theme"], completed("open", "--th")
assert completed("open", "--theme", "") == ["light", "dark"], completed("open", "--theme", "")
assert "etc" in completed("open", "et")
assert completed("completion", "nonsense") == []
for shell in ("zsh", "fish"):
    if shutil.which(shell):
        done = subprocess.run([shell, "-n"], input=partita("completion", shell).stdout, capture_output=True, text=True)
        assert done.returncode == 0, (shell, done.stderr)
page = partita("completion", "man").stdout
if shutil.which("groff"):
    # Without bold letters, which Debian's groff writes as a letter over itself.
    done = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou"], input=page, capture_output=True, text=True)
    assert done.returncode == 0 and "error" not in done.stderr, done.stderr
    assert "differs" in done.stdout, done.stdout[-500:]
assert partita("completion", "csh").returncode == 2
# A path in place of a verb is opened; what is neither is refused.
assert partita("/no/such/file.py").returncode == 2
