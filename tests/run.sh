#!/usr/bin/env bash
# Runs all tests, after installing by apt the tools that they drive, where this user may. What cannot be installed is
# named, and the run fails: no test is skipped silently.
set -eu
cd "$(dirname "$0")/.."

# tool → Debian package
tools=(
  perf:linux-perf prlimit:util-linux valgrind:valgrind readelf:binutils objdump:binutils eu-elflint:elfutils zstd:zstd gcc:gcc dwp:binutils xz:xz-utils dwz:dwz
  hotspot:hotspot script:bsdutils bzip2:bzip2
)
missing=()
for pair in "${tools[@]}"; do
  command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
if [ "${#missing[@]}" -gt 0 ]; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  else
    echo "The tests drive tools that are not here. Install them with:" >&2
    echo "  sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi
cargo test --no-fail-fast "$@"
