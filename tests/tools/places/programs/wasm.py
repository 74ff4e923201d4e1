# Wasmtime, embedded: the profiler's name, seconds.
import sys, time, wasmtime
config = wasmtime.Config()
config.profiler = sys.argv[1]
store = wasmtime.Store(wasmtime.Engine(config))
module = wasmtime.Module(store.engine, '''(module (func $fib (export "fib") (param i32) (result i32)
  (if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0))
    (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2))))))))''')
fib = wasmtime.Instance(store, module, []).exports(store)['fib']
end = time.time() + float(sys.argv[2])
while time.time() < end: fib(store, 25)
