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

# Sets `layer` to the innermost folder around the file that is a layer.
find_layer() {
  layer=${1%/*}
  while [[ $layer == */* && -z ${below[$layer]+x} ]]; do layer=${layer%/*}; done
}

while IFS=: read -r file included; do
  find_layer "$file" && own=$layer
  [ -n "${below[$own]+x}" ] || { complain "$file is in no layer of CMake's"; continue; }
  find_layer "${included#*\"}"
  [[ " ${below[$own]} " == *" $layer "* ]] || complain "$file includes upward: $included"
done < <(grep -rHoE '#include "(core/[a-z_]+|codegen|views|app)/[^"]+"' core codegen views app --include=*.h --include=*.cpp --include=*.def)
while read -r line; do complain "core, codegen or app/tasks includes Qt: $line"; done \
  < <(grep -rnE '#include [<"]Q[A-Z]' core codegen app/tasks --include=*.h --include=*.cpp)
while read -r line; do complain "only codegen includes LLVM, CUDA and oneDNN: $line"; done \
  < <(grep -rnE '#include [<"](llvm/|cuda|nvrtc|dnnl|oneapi)' core views app --include=*.h --include=*.cpp)
exit $status
