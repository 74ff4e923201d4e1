#!/usr/bin/env python3
"""Judges the names of JIT code in one cell of places.sh: how many frames have none, and whether each name is the right one.

    judge.py RECORDING ARTEFACTS [--pids PID,…] SHOWN…

RECORDING is the perf.data as it was recorded, each SHOWN the text that `perf script --ns -F pid,tid,time,ip,sym,dso` prints of it
or of its injected copy: as recorded, by perf inject, by jitgraft. ARTEFACTS is a directory of what the runtimes left, copied and named by the recording's own numbers:
PID.dump and PID.map; its file `parents` has lines of a process and the one that forked it, where the recording need not tell. Prints one line for each SHOWN: frames in JIT memory, those of them that an artefact tells the name of, and
those that are shown without a name, with the right one, with the name of code that was announced there later, with a wrong one.
A last line compares perf's best text with the last SHOWN: frames that only perf names, that only jitgraft names, that both name
otherwise. Up to five of the wrong ones follow.

The look-up is its own and as plain as can be: frames come from the recording's call chains; the last load or move at an address
before the sample holds, in the process's own dump or in that of the process that it was forked from; else the last line of a map.
"""
import bisect
import os
import struct
import subprocess
import sys

PAGE = 12
UNKNOWN = b"[unknown]"
CONTEXTS = {-32 % 2**64, -128 % 2**64, -512 % 2**64}


class Recording:
    """What matters of a perf.data of one kind of event: mappings, forks, execs and call chains."""

    def __init__(self, path):
        self.samples, self.forks, self.execs, self.maps = {}, {}, {}, {}
        data = open(path, "rb").read()
        assert data[:8] == b"PERFILE2", path
        attrs, start, size = (struct.unpack_from("<Q", data, at)[0] for at in (24, 40, 48))
        self.kind = struct.unpack_from("<Q", data, attrs + 24)[0]
        at, end = start, start + (size or len(data) - start)
        while at + 8 <= end:
            kind, misc, size = struct.unpack_from("<IHH", data, at)
            if size < 8:
                break
            self.record(kind, misc, data[at : at + size])
            at += size

    def record(self, kind, misc, record):
        trailer = sum(8 for bit in (6, 7, 9, 16) if self.kind >> bit & 1)
        if kind == 9:
            self.sample(record)
            return
        if kind not in (3, 7, 10):
            return
        time = struct.unpack_from("<Q", record, len(record) - trailer - 8)[0]
        pid, parent = struct.unpack_from("<II", record, 8)
        if kind == 7 and pid != parent:
            self.forks[pid] = (parent, struct.unpack_from("<Q", record, 24)[0])
        elif kind == 3 and misc >> 13 & 1:
            self.execs.setdefault(pid, []).append(time)
        elif kind == 10:
            start, length = struct.unpack_from("<QQ", record, 16)
            path = record[72:].split(b"\0")[0]
            executable = struct.unpack_from("<I", record, 64)[0] & 4
            if executable or not misc >> 13 & 1:
                self.maps.setdefault(pid, []).append((time, start, start + length, path))

    def sample(self, record):
        at, fields = 8, {}
        for bit in (16, 0, 1, 2, 3, 6, 9, 7, 8):
            if self.kind >> bit & 1:
                fields[bit] = struct.unpack_from("<Q", record, at)[0]
                at += 8
        assert not self.kind >> 4 & 1, "counters in samples are not read"
        count = struct.unpack_from("<Q", record, at)[0] if self.kind >> 5 & 1 else 0
        chain = struct.unpack_from(f"<{count}Q", record, at + 8) if count else (fields[0],)
        marks = [addr for addr in chain if addr >= 2**64 - 4095]
        # perf drops a chain with a mark that it does not know.
        addrs = [addr for addr in chain if addr < 2**64 - 4095] if CONTEXTS.issuperset(marks) else [fields[0]]
        pid, tid = fields[1] % 2**32, fields[1] >> 32
        self.samples.setdefault((fields[2], pid, tid), []).append(addrs)


def holds_jit(path):
    """Whether a mapping of this name may hold code that was made at run time."""
    return path.startswith((b"//anon", b"[anon", b"/memfd:", b"/dev/zero", b"/anon_hugepage", b"[heap]", b"//toolong")) or path == b""


class Layers:
    """Ranges that were written over each other, each with a time and something that it holds."""

    def __init__(self):
        self.pages = {}

    def add(self, time, start, end, what):
        for page in range(start >> PAGE, (max(end, start + 1) - 1 >> PAGE) + 1):
            self.pages.setdefault(page, []).append((time, start, end, what))

    def settle(self):
        for layers in self.pages.values():
            layers.sort(key=lambda layer: layer[0])

    def at(self, addr, since, until):
        """The last one that covers the address, of those that began then."""
        layers = self.pages.get(addr >> PAGE, ())
        for time, start, end, what in reversed(layers[: bisect.bisect_right([layer[0] for layer in layers], until)]):
            if time < since:
                return None
            if start <= addr < end:
                return what
        return None

    def after(self, addr, time):
        layers = self.pages.get(addr >> PAGE, ())
        return {what for begin, start, end, what in layers if begin > time and start <= addr < end}


def read_dump(layers, data):
    """Loads and moves. A last record whose name is whole counts, though its code is cut."""
    if len(data) < 40:
        return
    at, known = struct.unpack_from("<I", data, 8)[0], {}
    while at + 16 <= len(data):
        kind, size, time = struct.unpack_from("<IIQ", data, at)
        if size < 16:
            break
        if kind == 0 and at + 57 <= len(data):
            start, length, index = struct.unpack_from("<QQQ", data, at + 32)
            name, nul, _ = data[at + 56 : at + size].partition(b"\0")
            if nul:
                known[index] = start, name
                layers.add(time, start, start + length, name)
        elif kind == 1 and at + 64 <= len(data):
            old, new, length, index = struct.unpack_from("<QQQQ", data, at + 32)
            if index in known:
                name = known[index][1]
                layers.add(time, old, old + length, None)
                layers.add(time, new, new + length, name)
        at += size


def read_map(layers, data):
    for line in data.split(b"\n"):
        words = line.split(b" ", 2)
        try:
            start, size = (int(word, 16) for word in words[:2])
        except ValueError:
            continue
        if len(words) == 3:
            layers.add(0, start, start + size, words[2].rstrip())


class Truth:
    def __init__(self, recording, directory):
        self.recording, self.dumps, self.lines, self.files = recording, {}, {}, {}
        for name in os.listdir(directory):
            pid, _, ending = name.partition(".")
            data = open(os.path.join(directory, name), "rb").read()
            if name == "parents":
                for child, parent in (map(int, line.split()) for line in data.splitlines()):
                    recording.forks.setdefault(child, (parent, 0))
                continue
            where, read = (self.dumps, read_dump) if ending == "dump" else (self.lines, read_map)
            read(where.setdefault(int(pid), Layers()), data)
        for pid, maps in recording.maps.items():
            layers = self.files[pid] = Layers()
            for time, start, end, path in maps:
                layers.add(time, start, end, path)
        for table in (self.dumps, self.lines, self.files):
            for layers in table.values():
                layers.settle()

    def born(self, pid, time):
        return max((exec for exec in self.recording.execs.get(pid, ()) if exec <= time), default=0)

    def ancestry(self, pid, time):
        """The process and those from which it was forked since its last exec: number, from when, until when."""
        seen = set()
        while pid not in seen:
            seen.add(pid)
            born = self.born(pid, time)
            yield pid, born, time
            parent, forked = self.recording.forks.get(pid, (pid, 0))
            if born or parent == pid:
                return
            # A process that ran before is reported with time 0.
            pid, time = parent, forked or time

    def in_jit(self, pid, addr, time):
        for who, born, until in self.ancestry(pid, time):
            path = self.files[who].at(addr, born, until) if who in self.files else None
            if path is not None:
                return holds_jit(path)
        return False

    def names(self, pid, addr, time):
        """What may be shown, the best first: what was there, and what was announced there later."""
        now = None
        for who, born, until in self.ancestry(pid, time):
            now = now or who in self.dumps and self.dumps[who].at(addr, born, until) or None
        for who, _, until in self.ancestry(pid, time):
            # A map is the one of the last program that the process ran.
            if until >= max(self.recording.execs.get(who, ()), default=0):
                now = now or who in self.lines and self.lines[who].at(addr, 0, 0) or None
        later = self.dumps[pid].after(addr, time) if pid in self.dumps else set()
        return now, later


def shown(path):
    """The samples of perf script's text: (time, pid, tid) and [(name, file)]."""
    samples = []
    for line in open(path, "rb"):
        text = line.strip()
        if not text:
            continue
        head = text.split(None, 2)
        if line[:1] != b"\t" and b"/" in head[0] and head[1].endswith(b":"):
            pid, tid = map(int, head[0].split(b"/"))
            seconds, _, nanos = head[1].rstrip(b":").partition(b".")
            samples.append(((int(seconds) * 10**9 + int(nanos), pid, tid), []))
            # Without a call chain, the frame is on the same line.
            text = head[2] if len(head) > 2 else b""
        if text and samples:
            _, _, rest = text.partition(b" ")
            name, _, file = rest.rpartition(b" (")
            samples[-1][1].append((name, file.removesuffix(b")")))
    return samples


def guest_functions(path):
    """Begin, end and name of each function of a program that ran in QEMU, as nm tells them."""
    if not path:
        return []
    lines = subprocess.run(["nm", "-n", "-S", path], capture_output=True, check=True).stdout.splitlines()
    parts = [line.split() for line in lines]
    return [(int(part[0], 16), int(part[0], 16) + int(part[1], 16), part[3]) for part in parts if len(part) == 4 and part[2] in b"tTwW"]


GUEST = guest_functions(os.environ.get("GUEST"))


def is_right(name, now):
    """Whether a name is the one that is told, or that of the guest's function at the address that is told."""
    if name == now:
        return True
    guest = now.removeprefix(b"guest-0x") if now and now.startswith(b"guest-0x") else None
    return guest is not None and any(start <= int(guest, 16) < end and name == function for start, end, function in GUEST)


def judge(recording, truth, path, pids):
    """Counts, examples of what is wrong, and the name of each frame."""
    named = {}
    count = dict.fromkeys(("frames", "told", "unnamed", "right", "later", "wrong", "unread"), 0)
    examples, left = [], {key: list(chains) for key, chains in recording.samples.items()}
    for key, frames in shown(path):
        time, pid, _ = key
        if pids and pid not in pids:
            continue
        chains = [chain for chain in left.get(key, ()) if len(chain) == len(frames)]
        if not chains:
            count["unread"] += 1
            continue
        left[key].remove(chains[0])
        # perf looks up return addresses as they are, not the call before them.
        for addr, (name, _) in zip(chains[0], frames):
            if addr >= 2**63 or not truth.in_jit(pid, addr, time):
                continue
            now, later = truth.names(pid, addr, time)
            count["frames"] += 1
            place = key, len(left[key]), addr
            named.setdefault(place, []).append(None if name == UNKNOWN else name)
            count["told"] += now is not None
            if name == UNKNOWN:
                count["unnamed"] += 1
            elif is_right(name, now):
                count["right"] += 1
            elif now is None and name in later:
                count["later"] += 1
            else:
                count["wrong"] += 1
                examples.append((pid, time, hex(addr), name, now))
    return count, examples, named


def compare(perf, ours):
    """How many frames only perf names, only we name, and both name otherwise."""
    pairs = [pair for place, names in ours.items() for pair in zip(perf.get(place, ()), names)]
    return (
        sum(one is not None and other is None for one, other in pairs),
        sum(one is None and other is not None for one, other in pairs),
        sum(None not in (one, other) and one != other for one, other in pairs),
    )


def main():
    arguments, pids = sys.argv[1:], set()
    if "--pids" in arguments:
        at = arguments.index("--pids")
        pids = {int(pid) for pid in arguments[at + 1].split(",") if pid}
        del arguments[at : at + 2]
    recording = Recording(arguments[0])
    truth = Truth(recording, arguments[1])
    judged = [judge(recording, truth, path, pids) for path in arguments[2:]]
    for count, examples, _ in judged:
        print(*count.values(), sep="\t")
        for example in examples[:5]:
            print("wrong: pid %d time %d at %s: %r, not %r" % example, file=sys.stderr)
    *perf, ours = (named for _, _, named in judged)
    best = max(perf, key=lambda named: sum(name is not None for names in named.values() for name in names))
    print(*compare(best, ours), sep="\t")


if __name__ == "__main__":
    main()
