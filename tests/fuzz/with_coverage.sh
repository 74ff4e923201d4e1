#!/bin/sh
# Cargo's RUSTC_WRAPPER for fuzzing: gives libFuzzer's coverage counters to jitgraft and to nothing that it depends on.
# These are flags of LLVM, which every rustc has; `cargo fuzz` passes the same ones to every crate.
case " $* " in
  *" --crate-name jitgraft "*)
    exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
      -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
      -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0
    ;;
  *) exec "$@" ;;
esac
