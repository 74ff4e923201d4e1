#!/usr/bin/env bash
# places.sh [--tsv FILE] JITGRAFT [RUNTIME…]: the number of frames of JIT code that stay unnamed, by runtime and by
# where its process lived: of those recorded, by perf at its best (its own look-up in perf maps or `perf inject --jit`,
# whichever names more) and by jitgraft without a flag; and whether each name is the one that an independent look-up
# finds (places/judge.py).
#
#   frames in memory for JIT code, so without a name as recorded reported of these, what a dump or map of their process
#   gives the name of perf without a name after perf at its best perf-wrong that perf gives another name than the
#   artifact has (a map has no times: the last line of an address counts) jitgraft without a name after jitgraft later
#   named after code that was announced at that place only later wrong named otherwise than the artifact states
#   perf-only, only, differ: frames that only perf names, that only jitgraft names, that both name otherwise
#
# Exits with 1 if jitgraft leaves more than perf somewhere, leaves what is reported without offering the option that
# takes it (a file that was brought out of a container may be of another run), has a wrong name, or if no frame of JIT
# code was recorded. Runtimes that are not here are named, and are a failure if they were requested. SITUATIONS shows
# which, RUNTIMES where more versions lie (places/get.sh), ROOT where a system lies (debootstrap) that containers have
# as their root. Needs root (unshare), perf and python3.
set -u
table=/dev/null
[ "$1" = --tsv ] && { table=$2; shift 2; }
jitgraft=$(realpath "$1"); shift
tools=$(cd "$(dirname "$0")/places" && pwd)
dir=$(mktemp -d /var/tmp/places.XXXXXX)
chmod 755 "$dir"
trap 'rm -rf "$dir"; [ -z "${ROOT-}" ] || rmdir "$ROOT$dir"' EXIT
# Those of other users read them, too.
cp -r "$tools/programs" "$dir/programs" && chmod -R a+rX "$dir/programs"
programs=$dir/programs
. "$tools/runtimes.sh"
short=3 long=60 failed=0

record() { timeout 60 perf record -q -k mono -e cpu-clock -F "${FREQUENCY-299}" -g -o "$cell/p.data" "$@" >/dev/null 2>&1; }
tree() { echo "$1"; for child in $(pgrep -P "$1"); do tree "$child"; done; }
plain() { ( cd "$cell" && exec $1 ) >/dev/null 2>&1 & }
# A process 1 with a /tmp of its own, and with a system of its own, if ROOT is the directory of one that has the runtime.
contained() {
  local program=${1%% *}
  if [ -z "${ROOT-}" ]; then
    ( cd /; exec unshare -p -m -f --mount-proc bash -c "mount -t tmpfs tmpfs /tmp && cd /tmp && exec $1" ) >/dev/null 2>&1 &
  else
    mkdir -p "$ROOT$dir"
    ( cd /; exec unshare -p -m -f bash -c "mount -t proc proc $ROOT/proc && mount -t tmpfs tmpfs $ROOT/tmp && mount --bind $dir $ROOT$dir &&
      exec chroot $ROOT sh -c 'cd /tmp && exec ${program##*/}${1#"$program"}'" ) >/dev/null 2>&1 &
  fi
}
# The contained process of a command that was started behind unshare.
inner() { for _ in $(seq 50); do pgrep -P "$1" && return; sleep 0.1; done; }
# Servers and browsers take their time.
begun() { case $runtime in postgres* | chromium*) sleep 4 ;; *) sleep 1.5 ;; esac; }

# The files of the runtimes, by the numbers of the recording: what judge.py looks names up in.
keep_artefacts() {
  local pid own root file
  mkdir -p "$truth"
  for pid in "$@"; do
    awk -v pid="$pid" '/^PPid:/ { print pid, $2 }' "/proc/$pid/status" >> "$truth/parents" 2>/dev/null
    own=$(awk '/^NSpid:/ { print $NF }' "/proc/$pid/status" 2>/dev/null) root=
    [ -n "$own" ] && [ "$own" != "$pid" ] && root=/proc/$pid/root
    : "${own:=$pid}"
    for file in "$root"/tmp/perf-"$own".map; do [ -s "$file" ] && cp "$file" "$truth/$pid.map"; done
    for file in "$root"/tmp/{,.debug/jit/*/,jd/.debug/jit/*/}jit-{,*-}"$own".dump "$cell"/{,.debug/jit/*/,jd/.debug/jit/*/}jit-{,*-}"$own".dump; do
      [ -s "$file" ] && { [ -z "$root" ] || [ "${file#"$root"}" != "$file" ]; } && [ ! -e "$truth/$pid.dump" ] && cp "$file" "$truth/$pid.dump"
    done
  done 2>/dev/null
}

text_of() { timeout 120 perf script --no-inline --ns -F pid,tid,time,ip,sym,dso -i "$1" > "$2" 2>/dev/null; }

judge() {
  local frames told other wrong_by_perf
  text_of "$cell/p.data" "$cell/plain.txt"
  timeout 60 perf inject -j -i "$cell/p.data" -o "$cell/perf.jit.data" >/dev/null 2>&1 && text_of "$cell/perf.jit.data" "$cell/perf.txt" || : > "$cell/perf.txt"
  if ! "$jitgraft" inject -i "$cell/p.data" -o "$cell/out.data" >/dev/null 2>"$cell/said"; then
    echo "$runtime $situation: inject failed: $(tail -1 "$cell/said")"; failed=1; return
  fi
  text_of "$cell/out.data" "$cell/ours.txt"
  # Unread frames leave no line with numbers; a text of perf that is empty is not an alternative.
  case $runtime in qemu*) export GUEST=$dir/guest ;; *) unset GUEST ;; esac
  python3 "$tools/judge.py" "$cell/p.data" "$truth" --pids "$(IFS=,; echo "$*")" "$cell"/{plain,perf,ours}.txt > "$cell/counts" 2> "$cell/wrong" ||
    { tail -3 "$cell/wrong"; failed=1; return; }
  awk -v OFS='\t' -v runtime="$runtime" -v situation="$situation" '
    NR == 1 { best = $3; wrong = $6 }
    NR == 2 && $1 >= frames && $1 > 0 && $3 < best { best = $3; wrong = $6 }
    { frames = $1 }
    NR == 3 { row = runtime OFS situation OFS $1 OFS $2 OFS best OFS wrong OFS $3 OFS $5 OFS $6; said = verdict($3 > best, $3 > $1 - $2, $5 + $6, $1) }
    NR == 4 { print row, $1, $2, $3, said }
    function verdict(worse, left, wrong, any) {
      if (worse) return "worse than perf"
      if (wrong) return "wrong"
      if (left) return offered ? "offered" : "told, unnamed"
      return any ? "ok" : "no frames"
    }
  ' offered="$(grep -c 'to use it, pass' "$cell/said")" "$cell/counts" | tee -a "$table" > "$cell/row"
  awk -F'\t' '{ printf "%-24s %-15s %7s %7s %7s %10s %8s %6s %6s %9s %6s %6s  %s\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 }' "$cell/row"
  if ! grep -qE '	(ok|offered)$' "$cell/row"; then
    failed=1
    grep -v '^0 ' "$cell/said" | head -5 | cut -c1-240 | sed 's/^/    /'
    tail -5 "$cell/wrong" | sed 's/^/    /'
    [ -z "${KEEP-}" ] || keep_cell
  fi
}

keep_cell() {
  local kept=$KEEP/$runtime-$situation
  rm -rf "$kept"; mkdir -p "$kept"; cp -r "$cell"/{*.data,*.txt,said,counts,wrong,*.map,*.dump} "$truth" "$kept" 2>/dev/null
}

# A JVM that does not end writes its map when it is queried to.
ask_for_maps() { case $runtime in java*) for pid in "$@"; do timeout 20 jcmd "$pid" Compiler.perfmap >/dev/null 2>&1; done ;; esac; }
# 0 and -1 (of a task that ends) are nobody, and to kill, they are whole groups.
recorded() { perf script -i "$cell/p.data" -F pid 2>/dev/null | awk '$1 > 1' | sort -un; }
# A process that stands still can be compared with itself.
halt() { kill -STOP "$@" 2>/dev/null; }
finish() { kill -9 "$@" 2>/dev/null; wait 2>/dev/null; for pid in "$@"; do rm -f "/tmp/perf-$pid.map" "/tmp/perfinfo-$pid.map" /tmp/jit-{,*-}"$pid".dump; done; }

run_cell() {
  cell=$dir/$runtime-$situation truth=$dir/truth pids=()
  mkdir -p "$cell" && chmod 755 "$cell"
  local brief pid
  brief=$(command_of "$runtime" "$short"); lasting=$(command_of "$runtime" "$long")
  case $situation in
    normal | forked)
      if [ "$situation" = normal ]; then ( cd "$cell" && record -- $brief ); else ( cd "$cell" && record -- sh -c "$brief & wait" ); fi
      pids=($(recorded)); keep_artefacts "${pids[@]}"; judge "${pids[@]}" ;;
    all)
      plain "$brief"; pid=$!; begun; pids=($(tree $pid)); record -a -- sleep 1.5
      wait; keep_artefacts "${pids[@]}"; judge "${pids[@]}" ;;
    live | killed)
      plain "$lasting"; begun; pids=($(tree $!)); record -p "$(IFS=,; echo "${pids[*]}")" -- sleep 1.5
      ask_for_maps "${pids[@]}"; halt "${pids[@]}"; keep_artefacts "${pids[@]}"
      # Buffered output is lost then.
      [ "$situation" = live ] || { kill -9 "${pids[@]}"; wait; } 2>/dev/null
      judge "${pids[@]}" ;;
    container | dead-container | two-containers)
      contained "$lasting"; pid=$!
      if [ "$situation" = two-containers ]; then contained "$lasting"; fi
      begun; pids=($(tree "$(inner $pid)"))
      [ "$situation" != two-containers ] || pids+=($(tree "$(inner $!)"))
      record -p "$(IFS=,; echo "${pids[*]}")" -- sleep 1.5
      ask_for_maps "${pids[@]}"; halt "${pids[@]}"; keep_artefacts "${pids[@]}"
      if [ "$situation" = dead-container ]; then
        # As docker cp brings it.
        cp -p /proc/"${pids[0]}"/root/tmp/{,.debug/jit/*/,jd/.debug/jit/*/}{perf-*.map,jit-*.dump} "$cell" 2>/dev/null
        kill -9 "${pids[@]}" 2>/dev/null; wait 2>/dev/null
      fi
      judge "${pids[@]}" ;;
  esac
  finish "${pids[@]}"
  rm -rf "$cell" "$truth"
}

[ "$table" = /dev/null ] || printf 'runtime\tsituation\tframes\ttold\tperf\tperf-wrong\tjitgraft\tlater\twrong\tperf-only\tonly\tdiffer\tverdict\n' > "$table"
printf '%-24s %-15s %7s %7s %7s %10s %8s %6s %6s %9s %6s %6s\n' runtime situation frames told perf perf-wrong jitgraft later wrong perf-only only differ
asked=$#
[ $# -gt 0 ] || set -- "${ALL_RUNTIMES[@]}"
for runtime in "$@"; do
  if ! command_of "$runtime" 1 >/dev/null; then
    echo "$runtime: not here"
    [ "$asked" = 0 ] || failed=1
    continue
  fi
  for situation in ${SITUATIONS-normal forked all live killed container dead-container two-containers}; do run_cell; done
done
exit $failed
