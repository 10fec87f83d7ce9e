#!/bin/sh
# check_processes.sh SOURCE: child processes are started in core/process only, where limits, signals and what is left of
# them are seen to. The exception runs rm(1) in a signal handler.
found=$(cd "$1" && grep -nE '\b(_?[fF]ork|vfork|posix_spawnp?|popen|system|exec[vl]p?e?)\(' -r core codegen views app --include='*.cpp' --include='*.h' |
  grep -vE '^core/process/|^core/base/scratch\.cpp|^[^:]*:[0-9]+: *///?' )
[ -z "$found" ] && exit 0
echo "start processes with core/process:"
echo "$found"
exit 1
