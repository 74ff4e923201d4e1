#!/usr/bin/env bash
# Runs every command many times while the reader of its stderr leaves at a random moment, and counts how the runs end: none
# may panic (101) or end by a signal.
#
#   tests/tools/leaving_reader.sh target/debug/jitgraft [RUNS]
set -eu
program=$(realpath "$1")
runs=${2:-100}
fixtures=$(realpath "$(dirname "$0")/../../fixtures")
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
cp "$fixtures"/php-recording/* "$fixtures"/callgrind-jit/php-sepcallers.* "$fixtures"/script-layouts/default.txt .
cp "$fixtures"/trace-miri/input.json trace.json
mkfifo said

commands=(
  "inject -v perf.data.zst -o new.data" "callgrind php-sepcallers.callgrind.zst" "callgrind callgrind.out --perf-map php-sepcallers.map -o -"
  "collapse perf.data.zst" "flamegraph perf.data.zst" "report perf.data.zst" "script perf.data.zst" "script default.txt"
  "stats trace.json" "export --to speedscope perf.data.zst" "export --to pprof perf.data.zst" "doctor perf.data.zst" "formats" "inputs"
  "completions bash" "man pages" "report missing" "report --time x" "--help" "collapse --help"
)
zstd -dq php-sepcallers.callgrind.zst -o callgrind.out
bad=0
for command in "${commands[@]}"; do
  declare -A ends=()
  for ((run = 0; run < runs; run++)); do
    # Opens the pipe, stays for 0 to 79 milliseconds, leaves without having read to the end.
    (exec 3<said; sleep "0.0$((RANDOM % 8))$((RANDOM % 10))") &
    code=0
    # shellcheck disable=SC2086 # the words of a command
    timeout 60 "$program" $command </dev/null >/dev/null 2>said || code=$?
    wait
    ends[$code]=$((${ends[$code]:-0} + 1))
    [ "$code" -le 2 ] || bad=1
  done
  printf '%-70s' "$command"
  for code in "${!ends[@]}"; do printf ' rc %s: %s' "$code" "${ends[$code]}"; done
  echo
  unset ends
done
exit "$bad"
