# This many seconds of work: here, or (prefork) in two children that end by _exit, as servers' workers do.
import os, sys, time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def in_parent(): return fib(12)
def in_child(): return fib(15)
def work(what, seconds):
    end = time.time() + seconds
    while time.time() < end: what()
seconds = float(sys.argv[1])
if 'prefork' in sys.argv:
    work(in_parent, 0.2)
    for _ in range(2):
        if not os.fork():
            work(in_child, seconds)
            os._exit(0)
    work(in_parent, seconds)
else:
    work(in_child, seconds)
