#!/usr/bin/env bash
# Runs the tests, after installing by apt the tools that they drive, where this user may. Tools that cannot be installed
# are named, and the run fails: no test is skipped silently. Arguments go to `cargo test`.
#
# Tables (Parquet), which a plain build leaves out, are built and tested, too.
#
#   tests/run.sh          all tests but those that need a language's runtime or package manager
#   tests/run.sh --all    these, too: they are marked `#[ignore = "needs node: tests/run.sh --all"]`; and python/test.sh,
#                         and `cargo deny check` (deny.toml) where that is installed
set -eu
cd "$(dirname "$0")/.."

# tool:its Debian packages
tools=(
  perf:linux-perf prlimit:util-linux valgrind:valgrind readelf:binutils objdump:binutils eu-elflint:elfutils zstd:zstd gcc:gcc g++:g++ dwp:binutils xz:xz-utils dwz:dwz
  hotspot:hotspot aarch64-linux-gnu-objdump:binutils-aarch64-linux-gnu script:bsdutils bzip2:bzip2 chromium:chromium setpriv:util-linux
)
arguments=() with_python=
if [ "${1-}" = --all ]; then
  shift
  with_python=1
  export JITGRAFT_THOROUGH=1
  tools+=(node:nodejs npm:npm javac:default-jdk-headless go:golang-go)
  tools+=(qemu-system-aarch64:qemu-system-arm qemu-system-s390x:qemu-system-misc cpio:cpio)
  tools+=("aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu libc6-dev-arm64-cross" "arm-linux-gnueabihf-gcc:gcc-arm-linux-gnueabihf libc6-dev-armhf-cross")
  tools+=("s390x-linux-gnu-gcc:gcc-s390x-linux-gnu libc6-dev-s390x-cross")
  tools+=(php:php-cli php-fpm8.2:php8.2-fpm cgi-fcgi:libfcgi-bin "python3:python3 python3-venv" unshare:util-linux)
  # Runtimes whose switches are tried as they are printed.
  tools+=(mono:mono-runtime mcs:mono-mcs luajit:luajit "qmlscene:qmlscene qml-module-qtquick2" rakudo-m:rakudo erl:erlang-base)
  tools+=(lli:llvm-runtime pypy3:pypy3 jsc:libjavascriptcoregtk-4.0-bin)
  case " $* " in
    *" -- "*) arguments=(--include-ignored) ;;
    *) arguments=(-- --include-ignored) ;;
  esac
else
  # A quarter of the random cases that proptest tries for each property.
  export PROPTEST_CASES="${PROPTEST_CASES:-64}"
fi

find_missing() {
  missing=() packages=()
  for pair in "${tools[@]}"; do
    if ! command -v "${pair%%:*}" >/dev/null; then
      missing+=("${pair%%:*}")
      read -ra needed <<<"${pair#*:}"
      packages+=("${needed[@]}")
    fi
  done
}
find_missing
if [ "${#missing[@]}" -gt 0 ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null ||
    echo "apt-get could not install: ${packages[*]}" >&2
  find_missing
fi
if [ "${#missing[@]}" -gt 0 ]; then
  echo "The tests drive tools that are not here: ${missing[*]}. On Debian they are installed with:" >&2
  echo "  sudo apt-get install ${packages[*]}" >&2
  exit 1
fi
# What the compiler keeps for the next build makes a first build take half as long again.
[ -d "${CARGO_TARGET_DIR:-target}/debug/incremental" ] || export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"
cargo test --features tables --no-fail-fast "$@" ${arguments[@]+"${arguments[@]}"}
[ -n "$with_python" ] || exit 0
python/test.sh
# Not a package of Debian, and minutes to build: the workflow has it.
if ! command -v cargo-deny >/dev/null; then
  echo "not checked: the dependencies (deny.toml), because cargo-deny is missing: cargo install --locked cargo-deny" >&2
elif ! cargo deny --all-features fetch db 2>/dev/null; then
  echo "not checked: known weaknesses of the dependencies, because the list of them could not be fetched" >&2
  cargo deny --all-features check bans licenses sources
else
  cargo deny --all-features check
fi
