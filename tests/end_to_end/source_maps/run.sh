#!/bin/sh
# Bundles a program by each tool, runs each bundle in node, and compares the names that jitgraft shows of every function that V8
# compiled with npm's source-map (positions) and a parse of the authored source by Babel's parser (names of functions). Arguments:
# jitgraft, an empty directory. Prints a line of counts for each bundle; wrong names and places follow it.
set -eu
jitgraft=$1 work=$2 here=$(cd "$(dirname "$0")" && pwd)
cp -r "$here"/. "$work" && cd "$work"
npm install --no-audit --no-fund --ignore-scripts --loglevel=error >&2
bin=node_modules/.bin
{
  $bin/esbuild src/main.ts --bundle --minify --platform=node --sourcemap --outfile=out/esbuild.min.js
  $bin/esbuild src/main.ts --bundle --platform=node --sourcemap --outfile=out/esbuild.js
  $bin/esbuild src/main.ts --bundle --minify --target=es2017 --platform=node --sourcemap=inline --outfile=out/esbuild.inline.js
  $bin/tsc -p .
  for tool in config babel swc; do $bin/webpack -c webpack.$tool.js; done
  $bin/rollup -c
  $bin/babel src --out-dir out-babelcli --extensions .ts --presets=@babel/preset-env,@babel/preset-typescript --source-maps
} >&2
for bundle in out/esbuild.min.js out/esbuild.js out/esbuild.inline.js out-webpack/app.min.js out-babel/app.min.js out-swc/app.min.js \
  out-rollup/app.js out-rollup/app.min.js out-tsc/main.js out-babelcli/main.js; do
  # The map is written where node insists on it: it is taken from there at once.
  node --perf-basic-prof --interpreted-frames-native-stack "$work/$bundle" 25 >&2 & pid=$!
  wait $pid
  # Each function is a stack of its own, with a root that distinguishes it from others.
  grep -ao 'JS:.*:[0-9]*:[0-9]*$' "/tmp/perf-$pid.map" | sort -u | awk '{print "r" NR ";" $0 " 1"}' >names.folded
  rm "/tmp/perf-$pid.map" isolate*-v8.log
  for maps in off auto; do
    "$jitgraft" collapse -q --source-maps $maps names.folded | sed -E 's/^(r[0-9]+);(.*) 1$/\1\t\2/' | LC_ALL=C sort >$maps.names
  done
  LC_ALL=C join -t "$(printf '\t')" off.names auto.names | cut -f2,3 >pairs
  printf '%s ' "$bundle"
  node compare.js pairs
done
