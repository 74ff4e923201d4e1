"""The inputs of jobs: made when they are absent, from recordings or from nothing."""

import glob
import os
import random
import shutil
import struct
import subprocess

MMAP, EXIT, SAMPLE, MMAP2, FINISHED_ROUND = 1, 4, 9, 10, 68


class Missing(Exception):
    """An input that this machine does not have."""


class Given:
    """An input of some size, and where outputs go."""

    def __init__(self, path, directory, images=None):
        self.path, self.directory = path, directory
        self.out, self.errors, self.result = (os.path.join(directory, name) for name in ("out", "errors", "result"))
        # The place where perf inject puts its images, a hundred thousand and more: beside the dump.
        self.images = images
        self.environment = dict(os.environ, HOME=directory, LC_ALL="C")
        self.size = os.path.getsize(path)

    def forget(self):
        """Nothing is left of the last run, except perf's images: it is faster where it writes over them."""
        for path in (self.result, self.out, *glob.iglob(os.path.join(glob.escape(self.directory), "jitted-*.so"))):
            if os.path.exists(path):
                os.unlink(path)

    def leave(self):
        self.forget()
        for path in glob.iglob(os.path.join(glob.escape(self.images or self.directory), "jitted-*-*.so")):
            os.unlink(path)


class Place:
    """The places of inputs, and the ways they get there."""

    def __init__(self, directory, house, program):
        self.directory, self.house, self.program = directory, house, program
        os.makedirs(self.at("inputs"), exist_ok=True)
        os.makedirs(self.at("outputs"), exist_ok=True)

    def at(self, *names):
        return os.path.join(self.directory, *names)

    def given(self, path, images=None):
        return Given(path, self.at("outputs"), images)

    def made(self, name, make):
        """A file or directory of that name, which `make` fills under another one first."""
        path = self.at("inputs", name)
        if not os.path.exists(path):
            new = path + ".new"
            shutil.rmtree(new, ignore_errors=True)
            make(new)
            os.rename(new, path)
        return path

    def recording(self, name, file="perf.data"):
        path = self.at("recordings", name, file)
        if not os.path.exists(path):
            raise Missing(f"no recordings/{name}/{file}")
        return path

    def repeated(self, name, times):
        """A recording with its samples repeated; its dumps stay where they are, and its marker points to them."""
        source = self.recording(name)
        return self.made(f"{name}-{times}.data", lambda new: repeat(source, new, times))

    def generated(self, name, *words):
        """A directory with the recording of a program that never was, and its dumps."""

        def make(new):
            # The markers in the recording show where the dumps are: the name it will have.
            final = new.removesuffix(".new")
            command = ["cargo", "run", "-q", "--release", "--features", "tables,tools", "--example", "generate", "--"]
            program = os.environ.get("GENERATE")
            subprocess.run(([program] if program else command) + [final, *words], cwd=self.house, check=True)
            os.rename(final, new)

        return self.made(name, make)


def markers_here(record, directory):
    """A mapping of `jit-PID.dump` names that file in another directory; every other record stays."""
    kind, misc, length = struct.unpack_from("<IHH", record)
    fixed = {MMAP: 40, MMAP2: 72}.get(kind)
    if fixed is None or length < fixed:
        return record
    name, rest = record[fixed:].split(b"\0", 1)
    base = os.path.basename(name)
    if not (base.startswith(b"jit-") and base.endswith(b".dump")):
        return record
    name = os.path.join(os.fsencode(directory), base)
    trailer = record[fixed + (len(record) - fixed - len(rest)) :]
    # The part that the name is padding to eight bytes, then the sample's identity.
    padding = -(len(record) - fixed - len(trailer)) % 8
    trailer = trailer[padding:]
    name += b"\0" * (8 - len(name) % 8)
    body = record[8:fixed] + name + trailer
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def repeat(source, target, times):
    """A perf.data (file form, little-endian, one layout of samples, uncompressed) whose samples come `times` times, each
    time later by the recording's length; all other records once. Threads end the last time: perf of 7 forgets those that
    have ended."""
    with open(source, "rb") as file:
        data = file.read()
    attrs, _, start, size = struct.unpack_from("<QQQQ", data, 24)
    sample_type = struct.unpack_from("<Q", data, attrs + 24)[0]
    at = 8 + 8 * bool(sample_type & 1 << 16) + 8 * bool(sample_type & 1) + 8 * bool(sample_type & 2)
    # The fields of other records' trailers behind the time.
    at_end = -8 * (1 + sum(bool(sample_type & 1 << bit) for bit in (6, 7, 9, 16)))
    records, position = [], start
    while position + 8 <= start + size:
        kind, _, length = struct.unpack_from("<IHH", data, position)
        records.append((kind, markers_here(data[position : position + length], os.path.dirname(source))))
        position += max(length, 8)
    stamps = [struct.unpack_from("<Q", record, at)[0] for kind, record in records if kind == SAMPLE]
    span, written = max(stamps) - min(stamps) + 1_000_000, 0
    with open(target, "wb") as out:
        head = bytearray(data[:start])
        out.write(head)
        for turn in range(times):
            for kind, record in records:
                if turn and kind not in (SAMPLE, EXIT, FINISHED_ROUND) or kind == EXIT and turn + 1 < times:
                    continue
                if turn and kind != FINISHED_ROUND:
                    record = bytearray(record)
                    for place in (24, len(record) + at_end) if kind == EXIT else (at,):
                        struct.pack_into("<Q", record, place, struct.unpack_from("<Q", record, place)[0] + turn * span)
                out.write(record)
                written += len(record)
        features = sum(bin(byte).count("1") for byte in data[72:104])
        sections = start + size
        for at in range(features):
            offset, length = struct.unpack_from("<QQ", data, sections + 16 * at)
            out.write(struct.pack("<QQ", offset + written - size, length))
        out.write(data[sections + 16 * features :])
        struct.pack_into("<QQ", head, 40, start, written)
        out.seek(0)
        out.write(head)


def stacks(count, depth=20):
    """Stacks that share about half their frames with others."""
    state = 1
    for number in range(count):
        frames = []
        for level in range(depth):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            shared = (number // 4 ** (depth - level)) % 997 + level
            frames.append((state >> 33 if level < depth // 2 else shared) % 5000)
        yield frames


def native(frame):
    return b"\t%16x function_%d+0x10 (/usr/bin/app)\n" % (0x400000 + 64 * frame, frame)


def script_text(path, samples, distinct, line=native):
    """perf script's text of a recording with a number of samples and of distinct stacks."""
    lines = [line(frame) for frame in range(5000)]
    few = list(stacks(distinct)) if distinct < samples else None
    with open(path, "wb") as out:
        for at, stack in enumerate(stacks(samples) if few is None else (few[n * 7919 % distinct] for n in range(samples))):
            out.write(b"app 7/7 %d.%06d: 1000000 cpu-clock: \n" % (at // 1000, at % 1000 * 1000))
            out.write(b"".join([lines[frame] for frame in stack]) + b"\n")


def unnamed_text(directory, samples, distinct):
    """The same of a program half of whose functions are JIT code without names, with its perf map; and the text with them."""
    os.makedirs(directory)
    where = lambda frame: 0x7F0000000000 + 256 * frame

    def line(frame, named):
        if frame % 2:
            return native(frame)
        what = b"JS:*function_%d+0x10" % frame if named else b"[unknown]"
        return b"\t%16x %s (/tmp/perf-7.map)\n" % (where(frame) + 16, what)

    for name, named in (("unnamed.txt", False), ("named.txt", True)):
        script_text(os.path.join(directory, name), samples, distinct, lambda frame: line(frame, named))
    with open(os.path.join(directory, "perf-7.map"), "w") as out:
        out.writelines(f"{where(frame):x} 100 JS:*function_{frame}\n" for frame in range(0, 5000, 2))


def folded(path, lines):
    with open(path, "w") as out:
        for at, stack in enumerate(stacks(lines)):
            out.write("app;" + ";".join(f"function_{frame}" for frame in reversed(stack)) + f" {at % 97 + 1}\n")


def callgrind(directory, functions, lines=40):
    """Functions with costs of instructions, each of which calls the next; half of them are JIT code that has no name,
    whose names are in a perf map beside. Positions are relative where valgrind writes them so."""
    os.makedirs(directory)
    where = lambda at: (0x400000 if at % 2 else 0x7F0000000000) + 0x100 * at
    name = lambda at: f"function_{at}" if at % 2 else f"0x{where(at):016x}"
    with open(os.path.join(directory, "perf-7.map"), "w") as out:
        out.writelines(f"{where(at):x} 100 JS:*function_{at}\n" for at in range(0, functions, 2))

    with open(os.path.join(directory, "callgrind.out.7"), "w") as out:
        out.write("# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd: ./app\npart: 1\n")
        out.write("positions: instr line\nevents: Ir\n\n")
        out.write("ob=(1) ???\nfl=(1) ???\nfn=(0) 0x0000000000000000\n0x0 0 1\n\nob=(2) app\nfl=(2) app.c\n")
        for at in range(functions):
            known = at % 2
            out.write(f"ob=({known + 1})\nfl=({known + 1})\nfn=({at + 1}) {name(at)}\n0x{where(at) + 4:x} {known} 2\n")
            out.writelines(f"+4 {'+1' if known else '*'} {line % 7 + 1}\n" for line in range(2, lines))
            if at + 1 < functions:
                callee = (at + 1) % 2 + 1
                out.write(f"cob=({callee})\ncfi=({callee})\ncfn=({at + 2}) {name(at + 1)}\n")
                out.write(f"calls=1 0x{where(at + 1):x} 0\n+4 {'+1' if known else '*'} {(functions - at) * 10}\n")
            out.write("\n")


def trace(path, spans):
    """Spans of a compiler, four deep."""
    with open(path, "w") as out:
        out.write('{"traceEvents":[\n')
        for at in range(spans):
            depth, end = at % 4, ",\n" if at + 1 < spans else "\n"
            start, length = at // 4 * 100 + depth * 10, 95 - depth * 20
            out.write(
                f'{{"name":"span_{at % 499}","cat":"frame","ph":"X","ts":{start},"dur":{length},"pid":7,"tid":7,"args":{{"n":{at}}}}}{end}'
            )
        out.write("]}\n")


def profile(path, calls, threads=8):
    """A measureme profile (file version 9) with a number of calls, as Miri writes them: each when it ends, of virtual threads
    that take turns."""
    names = [b"core::iter::Iterator::function_%d" % at for at in range(500)]
    metadata = b'{"start_time":0,"process_id":7,"cmd":"rustc","counter":null}'
    data, ids = b"MMSD" + struct.pack("<I", 9), []
    for name in [*names, metadata]:
        ids.append(len(data) + 100_000_003)
        data += name + b"\xff"
    index = b"MMSI" + struct.pack("<I", 9) + struct.pack("<QQ", 100_000_001, ids.pop() - 100_000_003)
    event, dice = struct.Struct("<QQIIII"), random.Random(1)
    open_calls, clock, written, rows = [[] for _ in range(threads)], 0, 0, [b"MMES" + struct.pack("<I", 9)]
    with open(path, "wb") as out:

        def page(tag, content):
            out.write(struct.pack("<BI", tag, len(content)) + content)

        out.write(b"MMPD" + struct.pack("<I", 9))
        page(1, data)
        page(2, index)
        while written < calls:
            thread = dice.randrange(threads)
            stack = open_calls[thread]
            for roll in dice.randbytes(1000):
                clock += 20 + roll
                if stack and (roll < 128 or len(stack) == 24):
                    name, start = stack.pop()
                    upper = (start >> 32) << 16 | clock >> 32
                    rows.append(event.pack(ids[name], ids[name], thread, start & 0xFFFFFFFF, clock & 0xFFFFFFFF, upper))
                    written += 1
                else:
                    name = stack[-1][0] * 7 % 499 + 1 if stack else 1
                    stack.append(((name + (roll > 246)) % 500, clock))
                if len(rows) == 8000:
                    page(0, b"".join(rows))
                    rows = []
        page(0, b"".join(rows))
