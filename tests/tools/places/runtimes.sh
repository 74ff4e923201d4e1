# The runtimes that places.sh can record: sourced by it. `command_of RUNTIME SECONDS` prints the command that works for so long in
# the current directory and leaves a dump or a map there or in /tmp; it fails if the runtime is not here. $programs and $dir are
# places.sh's; versions that no distribution has side by side lie in $RUNTIMES (places/get.sh).

ALL_RUNTIMES=(
  node-dump node-map node18-dump node22-dump node22-map node24-dump node25-dump node25-map deno-dump bun-dump jsc-dump chromium-dump
  java-map java17-map java21-map java25-map php-dump php-map php8.4-dump php8.5-dump php-fpm-dump php-fpm-map
  erlang-dump erlang-map erlang29-dump python3.12-map python3.13-map python3.13-dump python3.14-dump python3.15-dump
  python3.12-prefork-map python3.13-prefork-dump python3.14-prefork-dump
  wasmtime-dump wasmtime-map mono-map mono6.14-map dotnet3.1-map raku-map lli-dump lli21-dump qemu-dump qemu-map postgres-dump
)

# The program of this name: in $RUNTIMES, or one of the machine's.
have() {
  if [ -n "${RUNTIMES-}" ] && [ -x "$RUNTIMES/$1" ]; then echo "$RUNTIMES/$1"; else command -v "$1"; fi
}

php_flags="-d opcache.enable=1 -d opcache.enable_cli=1 -d opcache.file_update_protection=0 -d opcache.jit_buffer_size=32M -d opcache.jit=tracing"

command_of() {
  local name=${1%-*} artefact=${1##*-} seconds=$2 program
  case $1 in
    node*-dump) program=$(have "$name") && echo "$program --perf-prof --interpreted-frames-native-stack $programs/work.js $seconds" ;;
    node*-map) program=$(have "$name") && echo "$program --perf-basic-prof --interpreted-frames-native-stack $programs/work.js $seconds" ;;
    deno-dump) program=$(have deno) && echo "$program run --v8-flags=--perf-prof,--interpreted-frames-native-stack $programs/work.js $seconds" ;;
    bun-dump) program=$(have bun) && echo "env BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=. $program $programs/work.js $seconds" ;;
    jsc-dump) program=$(have jsc) && echo "env JSC_useJITDump=1 JSC_jitDumpDirectory=. $program $programs/work.js -- $seconds" ;;
    chromium-dump) have chromium >/dev/null && echo "bash $programs/chromium.sh $seconds" ;;
    java*-map) program=$(have "$name") && have javac >/dev/null && compiled Loop.class javac -d "$dir" --release 17 "$programs/Loop.java" &&
      echo "$program -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -cp $dir Loop $seconds" ;;
    php-fpm-*) program=$(have php-fpm8.2) && have cgi-fcgi >/dev/null && echo "bash $programs/php-fpm.sh $program $(php_debug "$artefact") $seconds" ;;
    php*) program=$(have "$name") && echo "$program $php_flags -d opcache.jit_debug=$(php_debug "$artefact") $programs/work.php $seconds" ;;
    erlang*) program=$(have "${name/erlang/erl}") && have erlc >/dev/null && compiled work.beam erlc -o "$dir" "$programs/work.erl" &&
      echo "$program +JPperf $artefact -noshell -pa $dir -run work main $seconds -s init stop" ;;
    python*-prefork-*) program=$(have "${name%-prefork}") && echo "$program -X $(python_option "$artefact") $programs/work.py $seconds prefork" ;;
    python*) program=$(have "$name") && echo "$program -X $(python_option "$artefact") $programs/work.py $seconds" ;;
    wasmtime-*) program=$(have wasmtime-py) && echo "$program $programs/wasm.py ${artefact/map/perfmap} $seconds" | sed 's/ dump / jitdump /' ;;
    mono*) program=$(have "$name") && have mcs >/dev/null && compiled Loop.exe mcs -out:"$dir/Loop.exe" "$programs/Loop.cs" &&
      echo "$program --jitmap $dir/Loop.exe $seconds" ;;
    dotnet*) program=$(have "$name") && have mcs >/dev/null && compiled Loop.exe mcs -out:"$dir/Loop.exe" "$programs/Loop.cs" &&
      echo '{"runtimeOptions":{"framework":{"name":"Microsoft.NETCore.App","version":"3.1.0"}}}' > "$dir/Loop.runtimeconfig.json" &&
      echo "env COMPlus_PerfMapEnabled=1 $program exec --runtimeconfig $dir/Loop.runtimeconfig.json $dir/Loop.exe $seconds" ;;
    raku-map) program=$(have raku) && echo "env MVM_JIT_PERF_MAP=1 $program $programs/work.raku $seconds" ;;
    lli*) program=$(have "$name") && sed "s/SECONDS/$seconds/" "$programs/work.ll" > "$dir/work-$seconds.ll" &&
      echo "env JITDUMPDIR=. $program --jit-kind=mcjit $dir/work-$seconds.ll" ;;
    qemu-*) program=$(have qemu-aarch64-11) && have aarch64-linux-gnu-gcc >/dev/null &&
      compiled guest aarch64-linux-gnu-gcc -O1 -static -o "$dir/guest" "$programs/guest.c" &&
      echo "$program -${artefact/map/perfmap} $dir/guest $seconds" | sed 's/ -dump / -jitdump /' ;;
    postgres-dump) program=$(postgres_programs) && echo "bash $programs/postgres.sh $program $seconds" ;;
    *) return 1 ;;
  esac
}

# Makes a file of $dir by a command, once.
compiled() { [ -e "$dir/$1" ] || "${@:2}" >/dev/null 2>&1; }
php_debug() { [ "$1" = map ] && echo 16 || echo 32; }
python_option() { [ "$1" = map ] && echo perf || echo perf_jit; }
postgres_programs() { local found; found=$(ls -d /usr/lib/postgresql/*/lib/llvmjit.so 2>/dev/null | tail -1) && [ -n "$found" ] && echo "${found%/lib/*}/bin"; }
