#!/usr/bin/env bash
# A signal ends the program, what it started and what it left in TMPDIR. signals.sh PARTITA SOURCE_DIR
partita=$1 sample=$2/resources/samples/mlp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PARTITA_STORE=$work/store.sqlite TMPDIR=$work/tmp
mkdir "$TMPDIR"
"$partita" aot "$sample/program.pt2" -o "$work/graphs" || exit 1
status=0

# A try that starts a grandchild and never ends; it says who they are.
cat >"$work/hang.sh" <<EOF
sleep 600 & echo \$! >"$work/grandchild"
echo \$\$ >"$work/child"
wait
EOF

for signal in INT TERM HUP; do
  rm -f "$work/child" "$work/grandchild"
  # setsid: background jobs of a script ignore SIGINT otherwise.
  setsid "$partita" minify "$work/graphs/joint.py" --command "sh $work/hang.sh {}" -o "$work/out" 2>"$work/err" &
  parent=$!
  for _ in $(seq 200); do [ -s "$work/grandchild" ] && [ -s "$work/child" ] && break; sleep 0.1; done
  [ -s "$work/grandchild" ] || { echo "FAIL: the try was not started"; exit 1; }
  parent=$(pgrep -f "minify $work/graphs/joint.py" | head -1)
  kill -s "$signal" "$parent"
  wait
  for _ in $(seq 50); do kill -0 "$(cat "$work/grandchild")" 2>/dev/null || break; sleep 0.1; done
  for who in child grandchild; do
    if kill -0 "$(cat "$work/$who")" 2>/dev/null; then echo "FAIL: SIG$signal leaves the $who running"; status=1; fi
  done
  if [ -n "$(ls -A "$TMPDIR")" ]; then echo "FAIL: SIG$signal leaves $(ls "$TMPDIR")"; status=1; rm -rf "${TMPDIR:?}"/*; fi
  if [ "$(tail -1 "$work/err")" != "partita: stopped by a signal" ]; then
    echo "FAIL: SIG$signal says: $(tail -1 "$work/err")"; status=1
  fi
done
exit $status
