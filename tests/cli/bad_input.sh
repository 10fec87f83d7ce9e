#!/usr/bin/env bash
# Bad input gets one clear line on stderr, the right exit code, no crash and no hang. bad_input.sh PARTITA SOURCE_DIR
partita=$1 sample=$2/resources/samples/mlp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PARTITA_STORE=$work/store.sqlite
unset DISPLAY WAYLAND_DISPLAY QT_QPA_PLATFORM
status=0

# expect CODE WORDS COMMAND...: exit code and a part of the one line.
expect() {
  local code=$1 words=$2
  shift 2
  timeout 60 "$@" >"$work/out" 2>"$work/err"
  local got=$? lines
  lines=$(grep -c . "$work/err")
  if [ "$got" -ne "$code" ] || [ "$lines" -ne 1 ] || ! grep -qF -- "$words" "$work/err"; then
    echo "FAIL: ${*/$work/.}: exit $got (wanted $code), $lines lines (wanted 1 with '$words'):"
    head -5 "$work/err"
    status=1
  fi
}

: >"$work/empty.py"
head -c 3000 "$sample/program.pt2" >"$work/truncated.pt2"
head -c 5000 /dev/urandom >"$work/binary"
truncate -s 100M "$work/zeros.pt2"
head -c 200 "$sample/io.safetensors" >"$work/truncated.safetensors"
printf 'class G(torch.nn.Module):\n    def forward(self, x: "f32[2][1]cpu"):\n        y = torch.ops.aten.add.Tensor(x, \n' >"$work/cut.py"
printf 'class G(torch.nn.Module):\n    def forward(self, x: "f32[2][1]cpu"):\n        y: "f32[2][1]cpu" = torch.ops.mine.op.default(x);  x = None\n        return (y,)\n' >"$work/unknown.py"
printf 'class G(torch.nn.Module):\n    def forward(self, x: "f32[2, 3][3, 1]cpu", y: "f32[4, 5][5, 1]cpu"):\n        m = torch.ops.aten.mm.default(x, y);  x = y = None\n        return (m,)\n' >"$work/shapes.py"
printf '\200\004](' >"$work/truncated.input"
printf '\200\002cos\nsystem\nX\004\000\000\000truer\205R.' >"$work/hostile.input"
tensors() { # NAME DTYPE SHAPE BYTES: a safetensors file of one zero tensor input.0
  local header="{\"input.0\":{\"dtype\":\"$2\",\"shape\":$3,\"data_offsets\":[0,$4]}}"
  { printf "\\x$(printf %02x ${#header})\0\0\0\0\0\0\0%s" "$header"; head -c "$4" /dev/zero; } >"$work/$1"
}
tensors wrong_shape.safetensors F32 '[3]' 12
tensors wrong_dtype.safetensors I64 '[2]' 16
tensors good.safetensors F32 '[2]' 8
echo "not a database, just text that is long enough to be looked at as a header" >"$work/corrupt.sqlite"

expect 2 "no_such_file" "$partita" list "$work/no_such_file"
expect 2 "empty.py" "$partita" list "$work/empty.py"
expect 2 "truncated.pt2" "$partita" list "$work/truncated.pt2"
expect 2 "binary" "$partita" list "$work/binary"
expect 2 "zeros.pt2" "$partita" list "$work/zeros.pt2"
expect 2 "cut.py:4" "$partita" show "$work/cut.py"
expect 2 "hostile.input" "$partita" list "$work/hostile.input"
expect 2 "truncated.safetensors" "$partita" run "$sample/program.pt2" --inputs "$work/truncated.safetensors"
expect 3 "mine.op" "$partita" run "$work/unknown.py" --inputs "$work/good.safetensors"
# An operator that nobody knows is refused in the same words by all, where graphs are verified as well.
sed 's/ops.mine/ops.aten/' "$work/unknown.py" >"$work/unknown_aten.py"
for verify in "" --verify; do
  for name in unknown:mine.op.default unknown_aten:aten.op.default; do
    for words in "run --random-weights 1" "run --random-weights 1 --backend cpu" "compare --random-weights 1" "aot -o $work/aot" kernels; do
      expect 3 "no record for operator ${name#*:}" "$partita" $verify $words "$work/${name%:*}.py"
    done
  done
done
expect 2 "" "$partita" run "$sample/program.pt2"
expect 2 "" "$partita" run "$sample/program.pt2" --inputs "$work/wrong_shape.safetensors"
expect 2 "" "$partita" run "$sample/program.pt2" --inputs "$work/wrong_dtype.safetensors"
expect 2 "node m" "$partita" run "$work/shapes.py" --random-weights 1
expect 2 "nonsense" "$partita" run "$sample/program.pt2" --inputs "$sample/io.safetensors" --backend nonsense
expect 2 "no_such_graph" "$partita" show "$sample/program.pt2" --graph no_such_graph
expect 2 "" "$partita" nonsense
expect 2 "takes a number from 0 up, and got '-1'" "$partita" compare "$sample/program.pt2" --inputs "$sample/io.safetensors" --rtol -1
expect 2 "takes a whole number from 0 up, and got '-1'" "$partita" passes "$sample/program.pt2" --stop-after -1
# A thread whose stack does not fit into the address space cannot be started, as with ulimit -u 1.
no_threads="ulimit -s $((200 << 30)); exec \"\$@\""
if bash -c "$no_threads" bash "$partita" --version >/dev/null 2>&1; then
  QT_QPA_PLATFORM=offscreen expect 2 "ulimit -u" bash -c "$no_threads" bash "$partita" open "$sample/program.pt2"
fi
# Output that nobody can read is an error, and no exception leaves main.
for verb in "ops" "--help" "list $sample/program.pt2" "show $sample/program.pt2" "store list" "store stats --json" \
            "run $sample/program.pt2 --inputs $sample/io.safetensors --json"; do
  # shellcheck disable=SC2086
  expect 2 "cannot be written" sh -c '"$0" "$@" >/dev/full' "$partita" $verb
done
expect 2 "cannot be written" sh -c '"$0" ops >&-' "$partita"
# A closed stream's number is not given to a file, into which messages would go.
run=("$partita" run "$sample/program.pt2" --inputs "$sample/io.safetensors" --backend cpu)
"${run[@]}" -o "$work/open.safetensors" >/dev/null
expect 2 "cannot be written" sh -c 'out=$1; shift; "$0" "$@" -o "$out" >&-' "${run[0]}" "$work/closed.safetensors" "${run[@]:1}"
"${run[@]}" -o "$work/no_stderr.safetensors" >/dev/null 2>&- <&-
for file in closed no_stderr; do
  cmp -s "$work/open.safetensors" "$work/$file.safetensors" || { echo "FAIL: other results with closed streams"; status=1; }
done
[ "$("$partita" store verify)" = "0 problems" ] || { echo "FAIL: closed streams damage the store"; status=1; }
# A user who may start no more processes. For root there is no such limit.
limited=(prlimit --nproc=1)
if [ "$(id -u)" -eq 0 ]; then
  other=$(mktemp -d)
  trap 'rm -rf "$work" "$other"' EXIT
  chown 65534 "$other"
  limited=(setpriv --reuid=65534 --clear-groups "${limited[@]}" env PARTITA_STORE="$other" XDG_CONFIG_HOME="$other" HOME="$other")
fi
if "${limited[@]}" "$partita" list "$sample/program.pt2" >/dev/null 2>&1; then
  expect 2 "take fewer with --threads" "${limited[@]}" "${run[@]}" --threads 4
  expect 2 "a child process cannot be started" "${limited[@]}" "$partita" check "$2/tests/ops/cases"
else
  echo "skipped: another user cannot start the program, so the limit of threads is not tried"
fi
mkdir "$work/a;b"
for folder in "$work/missing" "$work/a;b"; do
  expect 2 "TMPDIR" env TMPDIR="$folder" "$partita" minify "$work/shapes.py" --command 'true {}' -o "$work/small"
done
expect 2 "corrupt.sqlite" env PARTITA_STORE="$work/corrupt.sqlite" "$partita" store stats
expect 2 "display" "$partita" open "$sample/program.pt2"
expect 2 "no such file" env QT_QPA_PLATFORM=offscreen "$partita" open "$work/missing.py" --screenshot "$work/missing.png"
shot=(env QT_QPA_PLATFORM=offscreen "$partita" open --screenshot "$work/bad.png")
expect 2 "truncated.pt2" "${shot[@]}" "$work/truncated.pt2"
expect 2 "binary" "${shot[@]}" "$work/binary"
expect 2 "empty.py" "${shot[@]}" "$work/empty.py"
expect 2 "cut.py" "${shot[@]}" "$work/cut.py"
expect 2 "hostile.input" "${shot[@]}" "$work/hostile.input"
expect 2 "no graph" "${shot[@]}" "$sample/program.pt2" --graph no_such_graph
expect 2 "no node" "${shot[@]}" "$sample/program.pt2" --select no_such_node
expect 2 "no view" "${shot[@]}" "$sample/program.pt2" --view no_such_view
expect 2 "cannot write" env QT_QPA_PLATFORM=offscreen "$partita" open "$sample/program.pt2" --screenshot "$work/no/such/folder.png"
[ ! -e "$work/bad.png" ] || { echo "FAIL: a picture of what could not be opened"; status=1; }
expect 2 "" "$partita" aot "$sample/program.pt2" -o "$work/empty.py/inside"
minify=("$partita" minify "$work/shapes.py" -o "$work/small")
expect 2 "--check" "${minify[@]}"
expect 2 "nonsense" "${minify[@]}" --check nonsense
expect 2 "nonsense" "${minify[@]}" --check crash:nonsense
expect 2 "--plant" "${minify[@]}" --check crash --plant aten.mm.default:nonsense
expect 2 "names no {}" "${minify[@]}" --command true
expect 2 "regular expression" "${minify[@]}" --command "cat {}" --matches "("
expect 1 "does not fail" "${minify[@]}" --command "false {}"
expect 2 "-o" "$partita" minify "$work/shapes.py" --check crash
expect 2 "nonsense" "$partita" run "$sample/program.pt2" --inputs "$sample/io.safetensors" --compiler nonsense
expect 2 "truncated.input" "$partita" run "$sample/program.pt2" --inputs "$work/truncated.input"
expect 2 "output.N" "$partita" compare "$work/shapes.py" --inputs "$work/good.safetensors" --backends stored,interp
exit $status
