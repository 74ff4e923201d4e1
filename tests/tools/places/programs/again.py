# Half of the time's work, then the same program again in its place, which does the rest: exec.
import os, sys, time
def first(n): return n if n < 2 else first(n - 1) + first(n - 2)
def second(n): return n if n < 2 else second(n - 1) + second(n - 2)
seconds = float(sys.argv[1])
end = time.time() + seconds / 2
while time.time() < end: (second if 'again' in sys.argv else first)(15)
if 'again' not in sys.argv:
    os.execv(sys.executable, [*sys.orig_argv, 'again'])
