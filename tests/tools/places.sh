#!/usr/bin/env bash
# places.sh JITGRAFT [RUNTIME…]: how many frames of JIT code stay without a name, by runtime and by where its process lived: as recorded,
# by perf at its best (its own perf map look-up or `perf inject --jit`, whichever names more) and by jitgraft without a flag.
# Exits with 1 if jitgraft leaves more than perf somewhere. Runtimes that are not here are named. Needs root (unshare) and perf.
set -u
jitgraft=$(realpath "$1"); shift
here=$(cd "$(dirname "$0")/../programs" && pwd)
dir=$(mktemp -d /var/tmp/places.XXXXXX)
trap 'kill -9 $(jobs -p) 2>/dev/null; rm -rf "$dir"' EXIT
seconds=60
worse=0

cat > "$dir/work.js" <<'J'
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
function sum(a) { let s = 0; for (let i = 0; i < 1e5; i++) s += a[i % 7] * i; return s }
const end = Date.now() + 1000 * +process.argv[2]; let x = 0
while (Date.now() < end) x += fib(20) + sum([1, 2, 3, 4, 5, 6, 7])
J
cat > "$dir/Loop.java" <<'J'
public class Loop {
    static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] a) {
        long end = System.currentTimeMillis() + 1000 * Long.parseLong(a[0]), x = 0;
        while (System.currentTimeMillis() < end) x += fib(20);
        System.out.println(x);
    }
}
J
cat > "$dir/work.php" <<'J'
<?php
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
$end = microtime(true) + (float)$argv[1]; $x = 0;
while (microtime(true) < $end) { $x += fib(18); for ($i = 0; $i < 10000; $i++) { $x += $i % 7; } }
J
cat > "$dir/work.py" <<'J'
import sys, time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
end = time.time() + float(sys.argv[1])
while time.time() < end: fib(15)
J
cat > "$dir/work.erl" <<'J'
-module(work). -export([main/1]).
main([S]) -> loop(erlang:monotonic_time(millisecond) + 1000 * list_to_integer(S)).
loop(E) -> fib(18), case erlang:monotonic_time(millisecond) < E of true -> loop(E); false -> ok end.
fib(N) when N < 2 -> N; fib(N) -> fib(N - 1) + fib(N - 2).
J

# The command of a runtime that works for so many seconds; it fails if the runtime is not here.
command_of() {
  case $1 in
    node-dump) type node >/dev/null 2>&1 && echo "node --perf-prof --interpreted-frames-native-stack $dir/work.js $2" ;;
    node-map) type node >/dev/null 2>&1 && echo "node --perf-basic-prof --interpreted-frames-native-stack $dir/work.js $2" ;;
    java-map) type javac >/dev/null 2>&1 && { [ -e "$dir/Loop.class" ] || javac -d "$dir" "$dir/Loop.java" 2>/dev/null; } &&
      echo "java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -cp $dir Loop $2" ;;
    php-map) type php >/dev/null 2>&1 && echo "$php -d opcache.jit_debug=16 $dir/work.php $2" ;;
    php-dump) type php >/dev/null 2>&1 && echo "$php -d opcache.jit_debug=32 $dir/work.php $2" ;;
    erlang) type erlc >/dev/null 2>&1 && { [ -e "$dir/work.beam" ] || erlc -o "$dir" "$dir/work.erl"; } &&
      echo "erl +JPperf true -noshell -pa $dir -run work main $2 -s init stop" ;;
    python-map) [ -n "${PYTHON-}" ] && echo "$PYTHON -X perf $dir/work.py $2" ;;
    python-dump) [ -n "${PYTHON-}" ] && "$PYTHON" -X perf_jit -c '' 2>/dev/null && echo "$PYTHON -X perf_jit $dir/work.py $2" ;;
  esac
}
php="php -d opcache.enable_cli=1 -d opcache.file_update_protection=0 -d opcache.jit_buffer_size=32M -d opcache.jit=tracing"

# Frames in JIT memory, all and those without a name, of a recording as perf prints it.
unnamed() {
  timeout 120 perf script -i "$1" ${only:+--pid=$only} -F pid,ip,sym,dso 2>/dev/null |
    awk '/\[unknown\] \((\/\/anon|\[anon|\/memfd|\/dev\/zero|\[heap\]|\[JIT\]|.*jitted-.*|.*perf-[0-9]+\.map|.*\.dump)/ { n++ } END { print n + 0 }'
}
record() { timeout 60 perf record -q -k mono -e cpu-clock -F 299 -g -o "$cell/p.data" "$@" >/dev/null 2>&1; }
# The recorded process of a command that was started behind unshare.
inner() { local at; for at in $(seq 50); do pgrep -P "$1" && return; sleep 0.1; done; }
contained() { ( cd /; exec unshare -p -m -f --mount-proc bash -c "mount -t tmpfs tmpfs /tmp && cd /tmp && exec $1" ) >/dev/null 2>&1 & }
plain() { ( cd "$cell" && exec $1 ) >/dev/null 2>&1 & }

judge() {
  local before best ours other
  best=$(unnamed "$cell/p.data")
  timeout 60 perf inject -j -i "$cell/p.data" -o "$cell/q.data" >/dev/null 2>&1 && other=$(unnamed "$cell/q.data") && [ "$other" -lt "$best" ] && best=$other
  "$jitgraft" inject -i "$cell/p.data" -o "$cell/out.data" >/dev/null 2>"$cell/said" || { echo "inject failed: $(tail -1 "$cell/said")"; worse=1; return; }
  ours=$(unnamed "$cell/out.data")
  before=$(grep -o '[0-9]* of [0-9]* JIT frames' "$cell/said" | cut -d' ' -f3)
  printf '%-12s %-16s %8s %8s %8s\n' "$runtime" "$situation" "${before:-0}" "$best" "$ours"
  if [ "$ours" -gt "$best" ]; then worse=1; echo "  more than perf: $(grep -v '^0 ' "$cell/said" | head -4 | tr '\n' ' ')"; fi
}

run_cell() {
  cell=$dir/$runtime-$situation; mkdir -p "$cell"
  local short long pid pids=()
  only=
  short=$(command_of "$runtime" 3); long=$(command_of "$runtime" "$seconds")
  case $situation in
    normal) ( cd "$cell" && record -- $short ); judge ;;
    forked) ( cd "$cell" && record -- sh -c "$short & wait" ); judge ;;
    # Whatever else runs is none of ours.
    all) plain "$short"; only=$!; sleep 0.3; record -a -- sleep 2; wait; judge ;;
    live|killed)
      plain "$long"; pid=$!; sleep 1.5; record -p $pid -- sleep 2
      if [ $situation = killed ]; then kill -9 $pid 2>/dev/null; wait 2>/dev/null; judge; else judge; kill -9 $pid; wait 2>/dev/null; fi ;;
    container|dead-container|two-containers)
      contained "$long"; pids=("$(inner $!)")
      [ $situation = two-containers ] && { contained "$long"; pids+=("$(inner $!)"); }
      sleep 1.5; record -p "$(IFS=,; echo "${pids[*]}")" -- sleep 2
      if [ $situation = dead-container ]; then
        # As docker cp brings it.
        cp -p /proc/"${pids[0]}"/root/tmp/{perf-*.map,jit-*.dump} "$cell" 2>/dev/null
        kill -9 "${pids[@]}" 2>/dev/null; wait 2>/dev/null; judge
      else
        judge; kill -9 "${pids[@]}" 2>/dev/null; wait 2>/dev/null
      fi ;;
  esac
  rm -rf "$cell"
}

printf '%-12s %-16s %8s %8s %8s\n' runtime situation frames perf jitgraft
[ $# -gt 0 ] || set -- node-dump node-map java-map php-map php-dump erlang python-map python-dump
for runtime in "$@"; do
  if ! command_of "$runtime" 1 >/dev/null; then echo "$runtime: not here"; continue; fi
  for situation in ${SITUATIONS-normal forked all live killed container dead-container two-containers}; do run_cell; done
done
exit $worse
