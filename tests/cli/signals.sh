#!/usr/bin/env bash
# A signal ends the program, what it started and what it left in TMPDIR. signals.sh PARTITA SOURCE_DIR
partita=$1 sample=$2/resources/samples/mlp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PARTITA_STORE=$work/store.sqlite TMPDIR=$work/tmp
mkdir "$TMPDIR"
"$partita" aot "$sample/program.pt2" -o "$work/graphs" || exit 1
status=0

# A try that starts grandchildren, one of them in a session of its own, and never ends; it says who they are.
cat >"$work/hang.sh" <<EOF
setsid sleep 600 & echo \$! >"$work/leader"
sleep 600 & echo \$! >"$work/grandchild"
echo \$\$ >"$work/child"
wait
EOF

for signal in INT TERM HUP KILL; do
  rm -f "$work/child" "$work/grandchild" "$work/leader"
  # setsid: background jobs of a script ignore SIGINT otherwise.
  setsid "$partita" minify "$work/graphs/joint.py" --command "sh $work/hang.sh {}" -o "$work/out" 2>"$work/err" &
  parent=$!
  for _ in $(seq 200); do [ -s "$work/grandchild" ] && [ -s "$work/child" ] && break; sleep 0.1; done
  [ -s "$work/grandchild" ] || { echo "FAIL: the try was not started"; exit 1; }
  parent=$(pgrep -f "minify $work/graphs/joint.py" | head -1)
  kill -s "$signal" "$parent"
  wait
  for _ in $(seq 50); do kill -0 "$(cat "$work/grandchild")" 2>/dev/null || break; sleep 0.1; done
  for who in child grandchild leader; do
    if kill -0 "$(cat "$work/$who")" 2>/dev/null; then echo "FAIL: SIG$signal leaves the $who running"; status=1; fi
  done
  if [ $signal = KILL ]; then rm -rf "${TMPDIR:?}"/*; continue; fi
  if [ -n "$(ls -A "$TMPDIR")" ]; then echo "FAIL: SIG$signal leaves $(ls "$TMPDIR")"; status=1; rm -rf "${TMPDIR:?}"/*; fi
  if [ "$(tail -1 "$work/err")" != "partita: stopped by a signal" ]; then
    echo "FAIL: SIG$signal says: $(tail -1 "$work/err")"; status=1
  fi
done

# A minification that is stopped leaves the smallest graph that it found, which fails, and what it was at.
cat >"$work/still_fails.sh" <<EOF
echo try >>"$work/tries"
[ "\$(wc -l <"$work/tries")" -gt 12 ] && sleep 600
grep -q aten.mm.default "\$1"
EOF
: >"$work/tries"
"$partita" minify "$work/graphs/joint.py" --command "sh $work/still_fails.sh {}" -o "$work/left" 2>"$work/err" &
minify=$!
for _ in $(seq 300); do [ "$(wc -l <"$work/tries")" -gt 12 ] && break; sleep 0.1; done
kill -s TERM $minify
wait $minify
calls() { grep -c " = torch.ops." "$1"; }
if ! grep -q aten.mm.default "$work/left/graph.py" ||
  [ "$(calls "$work/left/graph.py")" -ge "$(calls "$work/graphs/joint.py")" ] ||
  ! "$partita" run "$work/left/graph.py" --inputs "$work/left/inputs.safetensors" --backend interp >/dev/null ||
  ! grep -q -- --resume "$work/left/README.md" || [ -e "$work/left/.partita-unfinished" ]; then
  echo "FAIL: a stopped minification leaves $(ls -A "$work/left")"; status=1
fi

# One that is stopped before it found anything smaller leaves the graph itself.
cat >"$work/only_it.sh" <<EOF
echo try >>"$work/begun"
[ "\$(wc -l <"$work/begun")" -gt 1 ] && sleep 600
exit 0
EOF
"$partita" minify "$work/graphs/joint.py" --command "sh $work/only_it.sh {}" -o "$work/start" 2>"$work/err" &
minify=$!
for _ in $(seq 300); do [ -s "$work/begun" ] && [ "$(wc -l <"$work/begun")" -gt 1 ] && break; sleep 0.1; done
kill -s TERM $minify
wait $minify
if [ "$(calls "$work/start/graph.py")" -ne "$(calls "$work/graphs/joint.py")" ] ||
  ! "$partita" run "$work/start/graph.py" --inputs "$work/start/inputs.safetensors" --backend interp >/dev/null ||
  ! grep -q "Nothing smaller" "$work/start/README.md"; then
  echo "FAIL: a minification that found nothing yet leaves $(ls -A "$work/start")"; status=1
fi

# Verbs that are at work themselves, in threads or in forked children.
printf 'class G(torch.nn.Module):\n    def forward(self, x: "f64[4000, 4000][4000, 1]cpu"):\n        m = torch.ops.aten.mm.default(x, x);  x = None\n        return (m,)\n' >"$work/slow.py"
mkdir "$work/many"
# So many cases that a fast machine, too, is still at work when the signal comes.
for copy in $(seq 400); do tar -cC "$2/tests/ops/cases" --transform "s|^[.]/|$copy.|" .; done | tar -xiC "$work/many"
slow_run=(run "$work/slow.py" --random-weights 1) slow_check=(check "$work/many")
ends_by() { # SIGNAL WORD COMMAND...: the command, once it is at work, ends by the signal, leaves nobody, and says one line
  local signal=$1 said=$2 leader code
  shift 2
  setsid bash -c 'echo $$ >"$0"; exec "$@"' "$work/leader" "$partita" "$@" >/dev/null 2>"$work/err" &
  sleep 0.5
  leader=$(cat "$work/leader")
  kill -s "$signal" "$leader" || { echo "FAIL: $1 ended too early"; status=1; }
  wait $!
  code=$?
  for _ in $(seq 50); do pgrep -s "$leader" >/dev/null || break; sleep 0.1; done
  if pgrep -s "$leader" >/dev/null; then echo "FAIL: SIG$signal leaves children of $1"; status=1; pkill -KILL -s "$leader"; fi
  [ "$code" -gt 128 ] || { echo "FAIL: SIG$signal on $1 exits $code"; status=1; }
  [ "$(cat "$work/err")" = "$said" ] || { echo "FAIL: SIG$signal on $1 says: $(cat "$work/err")"; status=1; }
  [ -z "$(ls -A "$TMPDIR")" ] || { echo "FAIL: SIG$signal on $1 leaves $(ls "$TMPDIR")"; status=1; }
}
for signal in INT TERM HUP; do
  ends_by $signal "partita: stopped by a signal" "${slow_run[@]}"
  ends_by $signal "partita: stopped by a signal" "${slow_check[@]}"
done
# A reader that has seen enough ends the writer without a word.
for verb in ops "ops --json" "check $2/tests/ops/cases --json"; do
  # shellcheck disable=SC2086
  "$partita" $verb 2>"$work/err" | true
  code=${PIPESTATUS[0]}
  if [ "$code" -ne 141 ] && [ "$code" -ne 0 ] || [ -s "$work/err" ]; then
    echo "FAIL: $verb to a closed pipe: exit $code, $(cat "$work/err")"; status=1
  fi
done

# A run within one long call: minutes of work that the signal ends at once.
cat >"$work/long.py" <<EOF
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4000][1]cpu"):
        a = torch.ops.aten.mvlgamma.default(x, 1000000)
        return (a,)
EOF
setsid "$partita" run "$work/long.py" --random-weights 1 --backend interp -o "$work/out.safetensors" 2>"$work/err" &
run=$!
sleep 3
began=$SECONDS
kill -s INT $run
wait $run
code=$?
if [ $code != 130 ] || [ $((SECONDS - began)) -gt 5 ]; then
  echo "FAIL: SIGINT ends a run with $code after $((SECONDS - began)) s: $(cat "$work/err")"; status=1
fi
exit $status
