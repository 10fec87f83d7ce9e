#!/usr/bin/env bash
# Greps the includes of every room for an edge that points upward or sideways, and core and codegen for Qt.
cd "$1" || exit 2
declare -A below=(
  [base]="" [sym]="base" [tensor]="base sym" [ir]="base sym tensor" [loops]="base sym tensor ir"
  [ops]="base sym tensor ir loops"
)
under_ops="base sym tensor ir loops ops"
for room in load fake interp; do below[$room]=$under_ops; done
below[functionalize]="$under_ops fake"
below[grad]="$under_ops fake functionalize"
below[partition]="$under_ops fake"
below[passes]="$under_ops fake interp"
below[schedule]="$under_ops fake interp passes"
below[compare]="$under_ops fake functionalize grad interp load passes"
below[store]="$under_ops"
below[aot]="$under_ops fake functionalize grad partition interp passes schedule compare store load"
below[minify]="${below[aot]} aot"

status=0
complain() { echo "$1"; status=1; }
for folder in core/*/; do
  room=$(basename "$folder")
  [ -n "${below[$room]+x}" ] || { complain "core/$room is not in tests/rooms/check_includes.sh"; continue; }
  allowed=" $room ${below[$room]} "
  while IFS=: read -r file included; do
    target=$(sed -E 's|.*"core/([a-z_]+)/.*|\1|' <<<"$included")
    [[ $allowed == *" $target "* ]] || complain "$file includes upward: $included"
  done < <(grep -rHoE '#include "core/[a-z_]+/[^"]+"' "$folder" --include=*.h --include=*.cpp --include=*.def)
done
while read -r line; do complain "core or codegen includes Qt or a room above: $line"; done \
  < <(grep -rnE '#include [<"](Q[A-Z]|views/|app/)' core codegen --include=*.h --include=*.cpp)
while read -r line; do complain "core includes LLVM, CUDA, oneDNN or codegen: $line"; done \
  < <(grep -rnE '#include [<"](llvm/|cuda|nvrtc|dnnl|oneapi|codegen/)' core --include=*.h --include=*.cpp)
while read -r line; do complain "views include what compiles: $line"; done \
  < <(grep -rnE '#include [<"](llvm/|codegen/|app/)' views --include=*.h --include=*.cpp)
exit $status
