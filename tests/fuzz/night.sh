#!/usr/bin/env bash
# Fuzzes every target for HOURS in all, on one processor, and keeps what reached anything new.
#
#   tests/fuzz/night.sh HOURS [TARGET…]     fuzz, then minimize and pack the corpora
#   tests/fuzz/night.sh 0 [TARGET…]         only minimize and pack what an earlier call collected
#
# It needs cargo, a C++ compiler, zstd and unshare; any compiler of Rust will do (with_coverage.sh). The collected inputs
# and a line for each run are kept in $NIGHT (tests/fuzz/target/night unless set), what did harm in $NIGHT/found.
#
# The time is cut into slices, which the targets get in turn. A target whose slices reach no new edge sits out a round,
# then two, up to four: the time goes to those that still grow. Everything runs in a mount namespace with an empty /tmp,
# because whole commands look for dumps and maps there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }

if [ -z "${NIGHT_INSIDE-}" ]; then
  export NIGHT_INSIDE=1 NIGHT="${NIGHT:-$here/target/night}" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/target}"
  RUSTC_WRAPPER="$here/with_coverage.sh" RUSTFLAGS="--cfg fuzzing" cargo build --quiet --release \
    --manifest-path "$here/Cargo.toml" --target "$(rustc --print host-tuple)"
  mkdir -p "$NIGHT"
  user=()
  [ "$(id -u)" = 0 ] || user=(--map-root-user)
  exec unshare --mount ${user[@]+"${user[@]}"} sh -c 'mount -t tmpfs tmpfs /tmp && exec "$@"' sh "$here/night.sh" "$@"
fi

program="$CARGO_TARGET_DIR/$(rustc --print host-tuple)/release/all"
hours=$1
shift
if [ $# -gt 0 ]; then targets=("$@"); else
  mapfile -t targets < <(cd "$here/corpus" && printf '%s\n' *.tar.zst | sed 's/\.tar\.zst$//')
fi
# A target that runs whole commands covers much that varies from run to run: it keeps the fewest inputs that go everywhere.
whole=" callgrind_command convert inject logged merge scene script "
runs="$NIGHT/runs.tsv"
mkdir -p "$NIGHT/found"
for target in "${targets[@]}"; do
  if [ ! -d "$NIGHT/corpus/$target" ]; then
    mkdir -p "$NIGHT/corpus/$target"
    tar -C "$NIGHT/corpus/$target" --zstd -xf "$here/corpus/$target.tar.zst"
  fi
done

run() { # TARGET OPTION… DIRECTORY…
  local target=$1
  shift
  JITGRAFT_TARGET=$target "$program" -artifact_prefix="$NIGHT/found/$target-" -rss_limit_mb=2048 -timeout=60 "$@"
}

# Fuzzes a target for some seconds. An input that does harm ends the process, and is kept; the next one goes on.
# A line: target, seconds, executions, edges and features at the end, new edges.
fuzz() {
  local target=$1 until=$((SECONDS + $2)) log="$NIGHT/last.log" began=$SECONDS done=0 first= last=
  while [ $((until - SECONDS)) -gt 2 ]; do
    run "$target" -max_total_time=$((until - SECONDS)) -print_final_stats=1 "$NIGHT/corpus/$target" >"$log" 2>&1 || {
      cp "$log" "$NIGHT/found/$target-$(date +%s).log"
      sleep 1
    }
    done=$((done + $(sed -n 's/^stat::number_of_executed_units: *//p;' "$log" | grep . || sed -n 's/^#\([0-9]*\).*/\1/p' "$log" | tail -1 | grep . || echo 0)))
    first=${first:-$(sed -n 's/.*INITED cov: \([0-9]*\).*/\1/p' "$log" | head -1)}
    last=$(sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) .*/\1\t\2/p' "$log" | tail -1)
  done
  gained=$((${last%%$'\t'*} - ${first:-0}))
  printf '%s\t%s\t%s\t%s\t%s\n' "$target" $((SECONDS - began)) "$done" "${last:-0	0}" "$gained" | tee -a "$runs"
}

# All of a night's slices of a target are a sixth of its share: long enough to read a corpus, short enough to repeat.
seconds=$(awk "BEGIN { print int($hours * 3600) }")
slice=$((seconds / ${#targets[@]} / 6))
slice=$((slice < 30 ? 30 : slice > 600 ? 600 : slice))
end=$((SECONDS + seconds))
declare -A barren rests
while [ "$SECONDS" -lt "$end" ]; do
  for target in "${targets[@]}"; do
    left=$((end - SECONDS))
    [ "$left" -gt 0 ] || break
    if [ "${rests[$target]:-0}" -gt 0 ]; then
      rests[$target]=$((rests[$target] - 1))
      continue
    fi
    gained=0
    fuzz "$target" $((left < slice ? left : slice))
    if [ "$gained" -gt 0 ]; then barren[$target]=0; else barren[$target]=$((${barren[$target]:-0} + 1)); fi
    rests[$target]=$((barren[$target] > 4 ? 4 : barren[$target]))
  done
done

# Inputs that were kept before stay: an input that once did harm may reach nothing new since that was mended.
for target in "${targets[@]}"; do
  least="$NIGHT/least/$target"
  rm -rf "$least"
  mkdir -p "$least"
  tar -C "$least" --zstd -xf "$here/corpus/$target.tar.zst"
  how=(-merge=1)
  case $whole in *" $target "*) how=(-set_cover_merge=1 -use_counters=0) ;; esac
  if ! run "$target" "${how[@]}" "$least" "$NIGHT/corpus/$target" >"$NIGHT/last.log" 2>&1; then
    echo "$target: its inputs could not be minimized; see $NIGHT/last.log" >&2
    continue
  fi
  tar --sort=name --mtime=@0 --owner=0 --group=0 --format=ustar -C "$least" -c . |
    zstd -19 --long=27 -q -f -o "$here/corpus/$target.tar.zst"
done

echo "target executions edges features kept"
for target in "${targets[@]}"; do
  awk -v target="$target" -v kept="$(ls "$NIGHT/least/$target" | wc -l)" '
    $1 == target { executions += $3; edges = $4; features = $5 }
    END { print target, executions + 0, edges + 0, features + 0, kept }' "$runs"
done
if [ -n "$(ls "$NIGHT/found")" ]; then
  echo "What did harm, or took too long or too much memory: $NIGHT/found" >&2
  exit 1
fi
