#!/usr/bin/env bash
# The release build has what makes a fault in memory hard to use. hardened.sh PARTITA
command -v readelf >/dev/null || { echo "skipped: no readelf"; exit 77; }
status=0
require() { grep -qE "$2" <<<"$1" || { echo "FAIL: $3"; status=1; }; }
require "$(readelf -hW "$1")" 'Type: +DYN' "no position-independent executable"
require "$(readelf -lW "$1")" 'GNU_RELRO' "no read-only relocations"
require "$(readelf -dW "$1")" 'BIND_NOW' "relocations are not all bound at start"
require "$(readelf -lW "$1" | grep GNU_STACK)" ' RW ' "the stack is executable"
require "$(readelf -sW "$1")" '__stack_chk_fail' "no stack protector"
require "$(readelf -sW "$1")" '__[a-z]+_chk' "no _FORTIFY_SOURCE"
exit $status
