#!/usr/bin/env bash
# check_instructions.sh NM ARCHIVE: sources that are compiled for AVX2 or AVX-512 may define no function that the linker
# may take in place of another source's: a processor without these instructions would run it.
set -euo pipefail
own=$("$1" -A --defined-only "$2" | grep -E ':[a-z_]*_avx(2|512)\.cpp\.o:')
if grep -E ' [Wu] ' <<< "$own"; then
  echo "the symbols above are weak" >&2
  exit 1
fi
