#!/usr/bin/env python3
"""How time and memory grow with each size of an input:

    tests/tools/growth.py [--instructions] target/release/jitgraft DIR [KIND...]

makes inputs of three sizes of each kind in DIR, runs the command of that kind on each, and prints a table: seconds of
processor time, peak of anonymous memory in MB, and the slopes of both from the smallest to the largest size, on
logarithmic scales: 1 is linear, 2 quadratic. What starting up takes, with an input of next to nothing, is taken off
before. With --instructions it adds millions of instructions at the two smaller sizes, as valgrind's callgrind counts them
on one thread, and their slope. Inputs are made once and stay; nothing but Python is needed, and valgrind to count."""

import math
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

TAB, LINE = b"\t", b"\n"


def text_sample(out, n, frames, comm=b"app", pid=7, tid=7):
    """A sample of perf script's text; the outermost frame comes last."""
    out.write(b"%s %d/%d %d.%06d: 1000000 cpu-clock: \n" % (comm, pid, tid, n // 1000, n % 1000 * 1000))
    out.write(b"".join(b"\t%16x function_%d+0x10 (/usr/bin/app)\n" % (0x400000 + 64 * f, f) for f in frames) + LINE)


def paths(count, depth):
    """So many stacks that share about half their frames with others."""
    state = 1
    for n in range(count):
        frames = []
        for level in range(depth):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            frames.append(state >> 33 if level < depth // 2 else (n // 4 ** (depth - level)) % 997 + level)
        yield [f % 5000 for f in frames]


def samples(path, size):
    stacks = list(paths(2000, 20))
    with open(path, "wb") as out:
        for n in range(size):
            text_sample(out, n, stacks[n * 7919 % 2000])


def distinct(path, size):
    with open(path, "wb") as out:
        for n, stack in enumerate(paths(size, 20)):
            text_sample(out, n, stack)


def depth(path, size):
    with open(path, "wb") as out:
        for n in range(50):
            text_sample(out, n, [n] + [f % 5000 for f in range(size, 0, -1)])


class PerfData:
    """Writes a perf.data of one event: call chains, times, threads."""

    SAMPLE_TYPE = 1 | 2 | 4 | 32 | 256 | (1 << 16)  # ip, tid, time, call chain, period, identifier

    def __init__(self, ids=1):
        self.ids, self.records, self.time = ids, [], 1_000_000

    def record(self, kind, misc, body):
        self.records.append(struct.pack("<IHH", kind, misc, 8 + len(body)) + body)

    def trailer(self, pid, tid):
        self.time += 1000
        return struct.pack("<iiQQ", pid, tid, self.time, 1)

    def name(self, text):
        return text + bytes(8 - len(text) % 8)

    def comm(self, pid, tid, name):
        self.record(3, 0, struct.pack("<ii", pid, tid) + self.name(name) + self.trailer(pid, tid))

    def fork(self, pid, parent):
        self.record(7, 0, struct.pack("<iiiiQ", pid, parent, pid, parent, self.time + 1000) + self.trailer(pid, pid))

    def exit(self, pid):
        self.record(4, 0, struct.pack("<iiiiQ", pid, pid, pid, pid, self.time + 1000) + self.trailer(pid, pid))

    def mmap(self, pid, addr, length, path):
        body = struct.pack("<iiQQQ", pid, pid, addr, length, 0) + struct.pack("<IIQQII", 8, 1, 99, 0, 5, 2)
        self.record(10, 2, body + self.name(path) + self.trailer(pid, pid))

    def sample(self, pid, tid, chain, n=0):
        self.time += 1000
        body = struct.pack("<QQiiQQ", n % self.ids + 1, chain[0], pid, tid, self.time, 1000)
        self.record(9, 2, body + struct.pack(f"<QQ{len(chain)}Q", len(chain) + 1, 2**64 - 512, *chain))

    def write(self, path):
        attr = struct.pack("<IIQQQQQ", 1, 128, 0, 1000, self.SAMPLE_TYPE, 0, 1 | 1 << 8 | 1 << 13 | 1 << 18 | 1 << 23)
        attr += bytes(128 - len(attr))
        ids = 104 + 144
        data = ids + 8 * self.ids
        body = b"".join(self.records)
        with open(path, "wb") as out:
            out.write(b"PERFILE2" + struct.pack("<QQQQQQQ", 104, 144, 104, 144, data, len(body), 0) + bytes(8 + 32))
            out.write(attr + struct.pack("<QQ", ids, 8 * self.ids))
            out.write(b"".join(struct.pack("<Q", n + 1) for n in range(self.ids)) + body)


def threads(path, size):
    data = PerfData()
    data.mmap(7, 0x400000, 0x100000, b"/nowhere/app")
    for n in range(size):
        data.comm(7, 7 + n, b"worker %d" % n)
        data.sample(7, 7 + n, [0x400000 + 16 * (n % 500), 0x401000])
    data.write(path)


def processes(path, size):
    data = PerfData()
    data.mmap(7, 0x400000, 0x100000, b"/nowhere/app")
    for n in range(size):
        data.fork(8 + n, 7)
        data.comm(8 + n, 8 + n, b"child %d" % n)
        data.sample(8 + n, 8 + n, [0x400000 + 16 * (n % 500), 0x401000])
    data.write(path)


def mappings(path, size):
    data = PerfData()
    for n in range(size):
        data.mmap(7, 0x10000000 + 0x2000 * n, 0x1000, b"/nowhere/lib%d.so" % (n % 1000))
        data.sample(7, 7, [0x10000010 + 0x2000 * n, 0x10000010])
    data.write(path)


def dumps(path, size, first=8):
    """Every process has mapped a jitdump of its own, which is gone, and memory for JIT code."""
    data = PerfData()
    for n in range(size):
        data.fork(8 + n, 7)
        data.mmap(8 + n, 0x400000, 0x1000, b"/nowhere/jit-%d.dump" % (first + n))
        data.mmap(8 + n, 0x10000000, 0x10000, b"//anon")
        data.sample(8 + n, 8 + n, [0x10000000 + 16 * (n % 500), 0x10000100])
    data.write(path)


def foreign_dumps(path, size):
    """The same, but the dumps are named after processes that were not recorded."""
    dumps(path, size, 1_000_000)


def ids(path, size):
    data = PerfData(size)
    data.mmap(7, 0x400000, 0x100000, b"/nowhere/app")
    for n in range(size):
        data.sample(7, 7, [0x400000 + 16 * (n % 500), 0x401000], n)
    data.write(path)


def foreign_loads(path, size):
    """The same with many processes, and a dump whose records name others."""
    loads(path, size, 1_000_000)


def loads(path, size, first=None):
    """A jitdump beside the recording that maps it; every function has one sample."""
    dump = os.path.join(os.path.dirname(os.path.abspath(path)), f"loads-{size}", "jit-7.dump")
    os.makedirs(os.path.dirname(dump), exist_ok=True)
    data = PerfData()
    data.mmap(7, 0x1000, 0x1000, dump.encode())
    data.mmap(7, 0x7f0000000000, 64 * size + 4096, b"//anon")
    with open(dump, "wb") as out:
        out.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 7, 1, 0))
        for n in range(size):
            addr, name = 0x7F0000000000 + 64 * n, b"function_%d\0" % n
            data.sample(7, 7, [addr + 8])
            if first is not None:
                data.fork(100 + n, 7)
            pid = 7 if first is None else first + n
            out.write(struct.pack("<IIQIIQQQQ", 0, 56 + len(name) + 48, 2_000_000, pid, 7, addr, addr, 48, n) + name + bytes(48))
    data.write(path)


def functions(path, size):
    """Functions of callgrind that call each other in a ring."""
    with open(path, "w") as out:
        out.write("# callgrind format\nversion: 1\npid: 7\ncmd: ./ring\nevents: Ir\n\nob=(1) ring\nfl=(1) ring.c\n")
        for n in range(size):
            out.write(f"fn=({n + 1}) f{n}\n1 10\ncfn=({(n + 1) % size + 1}) f{(n + 1) % size}\ncalls=1 1\n1 {10 * (size - n)}\n")


def spans(path, size):
    """Spans in spans, each with time of its own."""
    with open(path, "w") as out:
        span = '{{"name":"span {}","ph":"X","ts":{},"dur":{},"pid":7,"tid":7}}'
        out.write("[" + ",\n".join(span.format(n % 1000, n, 2 * (size - n)) for n in range(size)) + "]\n")


def plugins(path, size, name=b"/nowhere/plugin.so"):
    """A plugin is loaded and unloaded: something is mapped at one address again and again, with samples between."""
    data = PerfData()
    for n in range(size):
        data.mmap(7, 0x10000000, 0x4000, name.replace(b"%", b"%d" % n))
        data.sample(7, 7, [0x10000010 + 16 * (n % 500), 0x10002000])
    data.write(path)


def other_plugins(path, size):
    """The same with plugins of distinct names."""
    plugins(path, size, b"/nowhere/plugin%.so")


def nested(path, size):
    """Each mapping lies in the middle of the one before, and cuts it in two."""
    data = PerfData()
    middle = 0x40000000
    for n in range(size):
        half = 0x1000 * (size - n)
        data.mmap(7, middle - half, 2 * half, b"/nowhere/lib%d.so" % (n % 1000))
        data.sample(7, 7, [middle + 16, middle - half + 16])
    for n in range(size):
        data.sample(7, 7, [middle + 0x1000 * n + 16, middle - 0x1000 * n - 16])
    data.write(path)


def stairs(path, size):
    """Each mapping begins a page behind the one before and covers the rest of it."""
    data = PerfData()
    for n in range(size):
        start, end = 0x10000000 + 0x1000 * n, 0x10000000 + 0x1000 * (size + n)
        data.mmap(7, start, end - start, b"/nowhere/lib%d.so" % (n % 1000))
        data.sample(7, 7, [start + 16, end - 16])
    data.write(path)


def fork_chain(path, size):
    """Each process forks the next one; all run what the first one mapped."""
    data = PerfData()
    data.mmap(7, 0x400000, 0x100000, b"/nowhere/app")
    data.comm(7, 7, b"app")
    for n in range(size):
        data.fork(8 + n, 7 + n)
        data.sample(8 + n, 8 + n, [0x400000 + 16 * (n % 500), 0x401000, 0x90000000])
    data.write(path)


def chain_of_mappings(path, size):
    """The same, and each process maps something of its own; samples lie in what ancestors mapped."""
    data = PerfData()
    for n in range(size):
        data.mmap(7 + n, 0x10000000 + 0x2000 * n, 0x1000, b"/nowhere/lib%d.so" % (n % 1000))
        data.fork(8 + n, 7 + n)
        data.sample(8 + n, 8 + n, [0x10000010 + 0x2000 * (n * 7919 % (n + 1)), 0x10000010])
    data.write(path)


def forks_and_mappings(path, size):
    """A process maps something and forks a child, in turn; the children run what it has mapped."""
    data = PerfData()
    for n in range(size):
        data.mmap(7, 0x10000000 + 0x2000 * n, 0x1000, b"/nowhere/lib%d.so" % (n % 1000))
        data.fork(8 + n, 7)
        data.sample(8 + n, 8 + n, [0x10000010 + 0x2000 * (n * 7919 % (n + 1)), 0x10000010])
    data.write(path)


def plugins_and_forks(path, size):
    """The same with mappings at one address."""
    data = PerfData()
    for n in range(size):
        data.mmap(7, 0x10000000, 0x4000, b"/nowhere/plugin%d.so" % (n % 1000))
        data.fork(8 + n, 7)
        data.sample(8 + n, 8 + n, [0x10000010 + 16 * (n % 500), 0x10002000])
    data.write(path)


def pids_again(path, size):
    """One number is given to process after process, each of which maps its program and a jitdump's marker."""
    directory = os.path.join(os.path.dirname(os.path.abspath(path)), f"again-{size}")
    os.makedirs(directory, exist_ok=True)
    dump = os.path.join(directory, "jit-8.dump")
    data = PerfData()
    data.mmap(7, 0x400000, 0x100000, b"/nowhere/app")
    with open(dump, "wb") as out:
        out.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 8, 1, 0))
        for n in range(size):
            data.fork(8, 7)
            data.comm(8, 8, b"child %d" % n)
            if n == 0:
                data.mmap(8, 0x1000, 0x1000, dump.encode())
            data.mmap(8, 0x7F0000000000, 0x2000 * size, b"//anon")
            addr, name = 0x7F0000000000 + 0x2000 * n, b"function_%d\0" % n
            data.sample(8, 8, [addr + 8, 0x400010 + 16 * (n % 500)])
            data.time += 1000
            load = struct.pack("<IIQIIQQQQ", 0, 56 + len(name) + 48, data.time, 8, 8, addr, addr, 48, n)
            out.write(load + name + bytes(48))
            data.sample(8, 8, [addr + 8, 0x400010 + 16 * (n % 500)])
            data.exit(8)
    data.write(path)


def programs_again(path, size):
    """The same with programs of their own: each process execs."""
    data = PerfData()
    data.mmap(7, 0x400000, 0x100000, b"/nowhere/app")
    for n in range(size):
        data.fork(8, 7)
        data.record(3, 1 << 13, struct.pack("<ii", 8, 8) + data.name(b"child %d" % n) + data.trailer(8, 8))
        data.mmap(8, 0x400000, 0x100000, b"/nowhere/child%d" % (n % 1000))
        data.sample(8, 8, [0x400000 + 16 * (n % 500), 0x401000])
        data.exit(8)
    data.write(path)


def many_mappings_forked(path, size):
    """A process with many mappings forks many children, which run them."""
    data = PerfData()
    for n in range(size):
        data.mmap(7, 0x10000000 + 0x2000 * n, 0x1000, b"/nowhere/lib%d.so" % (n % 1000))
    for n in range(size):
        data.fork(8 + n, 7)
        data.sample(8 + n, 8 + n, [0x10000010 + 0x2000 * (n * 7919 % size), 0x10000010])
    data.write(path)


def overlapping(path, size):
    """Complete events of one thread, each of which ends within the next one."""
    with open(path, "w") as out:
        span = '{{"name":"span {}","ph":"X","ts":{},"dur":{},"pid":7,"tid":7}}'
        out.write("[" + ",\n".join(span.format(n % 1000, n, size) for n in range(size)) + "]\n")


# The number of events in a long recording.
HISTORY = [3_000, 12_000, 48_000]

# The growing inputs: how they are made, their sizes, and the command.
KINDS = {
    "samples": (samples, [20_000, 80_000, 320_000], ["collapse"]),
    "distinct stacks": (distinct, [10_000, 40_000, 160_000], ["collapse"]),
    "depth": (depth, [2_000, 8_000, 32_000], ["report"]),
    "threads": (threads, [20_000, 80_000, 320_000], ["export", "--to", "firefox"]),
    "processes": (processes, [20_000, 80_000, 320_000], ["report", "--sort", "pid"]),
    "dumps": (dumps, [2_000, 8_000, 32_000], ["report", "--sort", "pid"]),
    "dumps of others": (foreign_dumps, [2_000, 8_000, 32_000], ["report", "--sort", "pid"]),
    "loads of others": (foreign_loads, [2_000, 8_000, 32_000], ["report"]),
    "mappings": (mappings, [20_000, 80_000, 320_000], ["report"]),
    "loads": (loads, [20_000, 80_000, 320_000], ["report"]),
    "functions": (functions, [20_000, 80_000, 320_000], ["report"]),
    "spans": (spans, [10_000, 40_000, 160_000], ["export", "--to", "speedscope"]),
    "ids": (ids, [20_000, 80_000, 320_000], ["report"]),
    "a plugin again and again": (plugins, HISTORY, ["report"]),
    "distinct plugins": (other_plugins, HISTORY, ["report"]),
    "nested mappings": (nested, HISTORY, ["report"]),
    "stairs of mappings": (stairs, HISTORY, ["report"]),
    "a chain of forks": (fork_chain, HISTORY, ["report"]),
    "a chain of forks, doctor": (fork_chain, HISTORY, ["doctor"]),
    "a chain of forks that map": (chain_of_mappings, HISTORY, ["report"]),
    "forks and mappings in turn": (forks_and_mappings, HISTORY, ["report"]),
    "forks and plugins in turn": (plugins_and_forks, HISTORY, ["report"]),
    "one pid again": (pids_again, HISTORY, ["report"]),
    "one pid again, inject": (pids_again, HISTORY, ["inject", "-f", "-o", "/dev/null"]),
    "one pid again, exec": (programs_again, HISTORY, ["report"]),
    "forks of many mappings, view": (many_mappings_forked, HISTORY, ["view", "--no-open", "-o", "/dev/null"]),
    "overlapping spans": (overlapping, HISTORY, ["report"]),
    "overlapping spans, active": (overlapping, HISTORY, ["report", "--clock", "active"]),
}


def run(command):
    """Seconds of processor time, and the peak of anonymous memory in MB."""
    errors = tempfile.TemporaryFile()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
    peak = 0
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        try:
            with open(f"/proc/{process.pid}/status") as about:
                peak = max([peak] + [int(line.split()[1]) for line in about if line.startswith("RssAnon")])
        except OSError:
            pass
        time.sleep(0.002)
    if status:
        errors.seek(0)
        sys.exit(f"{' '.join(command)}: {errors.read().decode(errors='replace')}")
    return used.ru_utime + used.ru_stime, peak / 1024


def best(command, runs=3):
    times, peaks = zip(*(run(command) for _ in range(runs)))
    return min(times), max(peaks)


def instructions(command):
    """Millions of them."""
    counter = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    counted = subprocess.run(counter + command + ["--threads", "1"], check=True, capture_output=True, text=True)
    return int(re.search(r"Collected : (\d+)", counted.stderr)[1]) / 1e6


def slope(sizes, values, base):
    """From the smallest to the largest size. What is hardly more than nothing has none."""
    least, most = (max(value - base, 0) for value in (values[0], values[-1]))
    if most < 0.02 or least <= 0:
        return "–"
    return f"{math.log(most / least) / math.log(sizes[-1] / sizes[0]):.2f}"


def main(program, directory, *kinds, counts=False):
    os.makedirs(directory, exist_ok=True)
    columns = ["what grows", "command", "sizes", "CPU s", "slope", "anonymous MB", "slope"]
    columns += ["million instructions", "slope"] if counts else []
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for kind in kinds or KINDS:
        make, sizes, command = KINDS[kind]
        measured, counted = [], []
        for size in [10] + sizes:
            path = os.path.join(directory, f"{make.__name__}-{size}.data")
            if not os.path.exists(path):
                make(path + ".new", size)
                os.rename(path + ".new", path)
            measured.append(best([program] + command + [path]))
            if counts and size != sizes[-1]:
                counted.append(instructions([program] + command + [path]))
        times, peaks = zip(*measured)
        cells = [
            kind,
            f"`{' '.join(command)}`",
            " / ".join(f"{size:,}" for size in sizes),
            " / ".join(f"{value:.2f}" for value in times[1:]),
            slope(sizes, times[1:], times[0]),
            " / ".join(f"{value:.0f}" for value in peaks[1:]),
            slope(sizes, peaks[1:], peaks[0]),
        ]
        if counts:
            cells += [" / ".join(f"{value:.0f}" for value in counted[1:]), slope(sizes[:2], counted[1:], counted[0])]
        print("| " + " | ".join(cells) + " |", flush=True)


words = [word for word in sys.argv[1:] if word != "--instructions"]
if len(words) < 2:
    sys.exit(__doc__)
main(*words, counts="--instructions" in sys.argv)
