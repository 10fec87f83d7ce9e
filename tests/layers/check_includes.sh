#!/usr/bin/env bash
# check_includes.sh SOURCES LAYERS: greps the includes of every layer for one that is not below it. LAYERS is what CMake
# wrote of its own dependences, a layer a line: "core/fake: core/ops".
layers=$(realpath "$2") && cd "$1" || exit 2

status=0
complain() { echo "$1"; status=1; }

declare -A below
while IFS=': ' read -r layer direct; do
  below[$layer]="$layer"
  for lower in $direct; do below[$layer]+=" ${below[$lower]:?$layer depends on $lower, which is not below it}"; done
done <"$layers"

for folder in core/* codegen views app; do
  [ -n "${below[$folder]+x}" ] || { complain "$folder is no layer of CMake's"; continue; }
  while IFS=: read -r file included; do
    [[ $included =~ \"((core/)?[a-z_]+)/ && " ${below[$folder]} " == *" ${BASH_REMATCH[1]} "* ]] ||
      complain "$file includes upward: $included"
  done < <(grep -rHoE '#include "(core/[a-z_]+|codegen|views|app)/[^"]+"' "$folder" --include=*.h --include=*.cpp --include=*.def)
done
while read -r line; do complain "core or codegen includes Qt: $line"; done \
  < <(grep -rnE '#include [<"]Q[A-Z]' core codegen --include=*.h --include=*.cpp)
while read -r line; do complain "only codegen includes LLVM, CUDA and oneDNN: $line"; done \
  < <(grep -rnE '#include [<"](llvm/|cuda|nvrtc|dnnl|oneapi)' core views app --include=*.h --include=*.cpp)
exit $status
