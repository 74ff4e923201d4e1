#!/usr/bin/env python3
"""Every command on every format that it accepts, with mutated inputs: how many runs panic, are killed or hang.

    tests/tools/pairs.py [--runs 500] [--seed 1] [--log FILE] [--fuzzer] target/release/jitgraft [WORD...]

WORDs limit the pairs to those whose command or format has one of them in its name. Each run has a stack of 2 MiB on every
thread, 4 GB of address space and 10 seconds of processor time (ten minutes, if it only waits). Build the program with checks, so that a wrong sum is a panic:

    CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true cargo build --release --features tables

With --fuzzer, the program is that of tests/fuzz (README.md there): it does hundreds of runs in one process, its first
thread has 2 MiB, too, and a run has 10 seconds. A run that reaches the limit of memory ends the process, and the next run
starts another one.

The inputs are the small ones of fixtures/, unpacked, and mutated: bits, bytes, numbers at their limits, words of other
inputs, parts that are cut out, doubled or moved, the end that is missing; half of them by the format's structure: members of
JSON, fields of protocol buffers, records of perf.data and lines are dropped, doubled, swapped, nested in themselves, and get
other values. Of an archive and of a profile that is packed, the
content is mutated before it is packed again. With the same seed the runs are the same. A line a pair is printed when all of
its runs are done; FILE gets a line for each turn of all pairs. All counts are also printed when the tool is ended early (SIGTERM).

A run that ends otherwise than with status 0, 1 or 2 is printed with its input, which is kept in pairs-found/. The status is
1 if there was any. Nothing but Python and zstd is needed."""

import argparse
import collections
import gzip
import hashlib
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STACK, ADDRESSES, SECONDS, WAITING = 2 << 20, 4 << 30, 10, 600
# Longer logs and texts are cut to this, and recordings to so many samples: what is mutated should be near the start,
# and runs are many.
LARGEST, MOST_SAMPLES = 30_000, 60

# Formats: files of fixtures/.
INPUTS = {
    "perf-data": ["php-recording/perf.data.zst", "recording-bpf/perf.data.zst", "recording-wasmtime/perf.data.zst",
                  "recording-machines/aarch64.g.perf.data.zst"],
    "measureme": ["measureme-interpreter/input.mm_profdata"],
    "cpuprofile": ["cpuprofile-node/input.cpuprofile", "wasm-node/app.cpuprofile"],
    "firefox": ["firefox-samply/input.json", "firefox-wasmtime/input.json", "wasm-firefox/app.json"],
    "speedscope": ["speedscope-pyinstrument/input.speedscope.json", "speedscope-pyspy/input.speedscope.json"],
    "pprof": ["pprof-go/input.pb", "pprof-go/heap.pb.gz"],
    "otlp": ["otlp-1.7/input.otlp", "otlp-1.9/input.otlp", "otlp-1.11/input.otlp"],
    "otlp-json": ["otlp-json/input.jsonl", "otlp-1.7/input.jsonl"],
    "chrome": ["trace-miri/input.json"],
    "callgrind": ["callgrind-small/input.callgrind", "callgrind-jit/cpython-perfjit.callgrind.zst"],
    "sample": ["sample-macos/input.sample.txt"],
    "xctrace": ["xctrace-instruments/input.xml"],
    "dtrace": ["dtrace-ustack/input.dtrace.txt"],
    "vtune": ["vtune-topdown/input.csv"],
    "vsprof": ["vsprof-calltree/input.csv"],
    "ghcprof": ["ghcprof-ticks/input.prof"],
    "perf-script": ["script-layouts/default.txt", "script-layouts/branches.txt", "script-layouts/one-line.txt"],
    "folded": ["folded-node/input.folded"],
}

# What is read beside a recording: files of fixtures/, the recording that they belong to, and the flag that names them.
SOURCES = {
    "jitdump": ("php-recording/jit-31795.dump", "php-recording/perf.data.zst", "--jitdump"),
    "perf-map": ("recording-node/perf-12592.map.zst", "recording-node/perf.data.zst", "--perf-map"),
    "v8-log": ("v8-log/isolate-0x807ceb0-15895-v8.log", "v8-log/perf.data.zst", "--jit-log"),
    "hotspot-log": ("hotspot-log/hotspot_pid12340.log.zst", "hotspot-log/perf.data.zst", "--jit-log"),
    "luajit-dump": ("recording-luajit/luajit.dump", "recording-luajit/perf.data.zst", "--jit-log"),
    "pypy-log": ("recording-pypy/pypy-11175.log", "recording-pypy/perf.data.zst", "--jit-log"),
    "core": ("recording-gdb-jit/core.24209.zst", "recording-gdb-jit/perf.data.zst", "--jit-log"),
    "kallsyms": ("recording-cpp/kallsyms", "recording-cpp/perf.data.zst", "--kallsyms"),
}

TO = ["firefox", "speedscope", "pprof", "otlp", "otlp-json", "json", "chrome", "callgrind", "folded", "flamegraph", "csv",
      "parquet"]
READING = [["report"], ["report", "--tree"], ["collapse"], ["flamegraph"], ["view", "--no-open"], ["stats"],
           ["merge", "--to", "pprof"]] + [["export", "--to", to] for to in TO]
OF_RECORDINGS = [["inject"], ["script"], ["doctor"], ["annotate"], ["pack"]]
ALL = READING + OF_RECORDINGS + [["callgrind"]]
# What is read beside a recording is read alike by most commands.
OF_SOURCES = [["inject"], ["report"], ["script", "-F", "+srcline"], ["annotate", "--format", "json"], ["view", "--no-open"]]


def unpacked(name):
    with open(os.path.join(ROOT, "fixtures", name), "rb") as file:
        content = file.read()
    if name.endswith(".zst"):
        content = subprocess.run(["zstd", "-dcq"], input=content, capture_output=True, check=True).stdout
    return gzip.decompress(content) if name.endswith(".gz") else content


LIMITS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**63, 2**64 - 1]
WORDS = [b"-1", b"0", b"18446744073709551615", b"9223372036854775808", b"1e308", b"null", b"[]", b"{}", b'""', b"\0", b"\xff",
         b"\xe2\x80\xae", b"../", b"/", b";", b"\n", b"(", b")", b"inf", b"nan", b"0x"]


def mutated(content, others, chance):
    """Some changes of any kind to a copy."""
    content = bytearray(content)
    for _ in range(chance.choice([1, 1, 1, 2, 3, 5, 8, 20])):
        at = chance.randrange(len(content) + 1)
        kind = chance.randrange(9)
        length = min(chance.choice([1, 2, 4, 8, 16, 64, 256, 4096]), len(content) - at)
        if kind == 0 and at < len(content):
            content[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and at < len(content):
            content[at] = chance.randrange(256)
        elif kind == 2:
            size = chance.choice([1, 2, 4, 8])
            number = chance.choice(LIMITS) % 256**size
            content[at:at + size] = number.to_bytes(size, chance.choice(["little", "big"]))
        elif kind == 3:
            content[at:at + chance.choice([0, 1, 4])] = chance.choice(WORDS)
        elif kind == 4:
            del content[at:at + length]
        elif kind == 5:
            content[at:at] = content[at:at + length] * chance.choice([1, 2, 50])
        elif kind == 6:
            other = chance.choice(others)
            start = chance.randrange(len(other))
            content[at:at + chance.choice([0, length])] = other[start:start + chance.choice([1, 8, 64, 512])]
        elif kind == 7:
            part = content[at:at + length]
            del content[at:at + length]
            start = chance.randrange(len(content) + 1)
            content[start:start] = part
        elif chance.randrange(4) == 0:
            del content[at:]
    return bytes(content)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def to_varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(data):
    """The fields of a message: tag, wire type, value; an error if it is none."""
    at, all_fields = 0, []
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at:at + size], at + size
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) < size:
                raise ValueError
        else:
            raise ValueError
        all_fields.append([key >> 3, wire, value])
    return all_fields


def message(all_fields):
    out = bytearray()
    for tag, wire, value in all_fields:
        out += to_varint(tag << 3 | wire)
        out += to_varint(value % 2**64) if wire == 0 else (to_varint(len(value)) if wire == 2 else b"") + value
    return bytes(out)


def changed_list(items, chance):
    """A list in which one item was dropped, doubled, moved or repeated."""
    at = chance.randrange(len(items))
    kind = chance.randrange(4)
    if kind == 0:
        del items[at]
    elif kind == 1:
        items.insert(at, items[at])
    elif kind == 2:
        items.insert(chance.randrange(len(items)), items.pop(at))
    else:
        items[at:at] = [items[at]] * chance.choice([2, 20, 300])


def changed_message(data, chance, depth=0):
    try:
        parts = fields(data)
    except (IndexError, ValueError):
        return None
    if not parts:
        return None
    for _ in range(chance.choice([1, 1, 2])):
        at = chance.randrange(len(parts))
        tag, wire, value = parts[at]
        if wire == 2 and depth < 6 and chance.randrange(4):
            inner = changed_message(value, chance, depth + 1)
            if inner is not None:
                parts[at][2] = inner
                continue
        kind = chance.randrange(6)
        if kind < 3:
            changed_list(parts, chance)
            if not parts:
                break
        elif kind == 3:
            parts[at] = [chance.choice([tag, tag + 1, chance.randrange(1, 40), 2**29 - 1]), wire, value]
        elif kind == 4 and wire == 0:
            parts[at] = [tag, 0, chance.choice(LIMITS + [value + 1, max(value - 1, 0)])]
        elif wire == 2:
            # The message in itself.
            inside = value
            for _ in range(chance.choice([1, 5, 150])):
                inside = message([[tag, 2, inside]])
            parts[at] = [tag, 2, inside]
    return message(parts)


VALUES = [None, True, -1, 0, 2**31, 2**53, 2**64, -2**63, 1e308, "", "x", "\ud83d\ude00", [], {}, [[]], [None], "0x1", "1", 1.5]


def changed_json(value, chance, depth=0):
    if isinstance(value, (list, dict)) and value and (depth < 2 or chance.randrange(5)):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = chance.choice(keys)
        kind = chance.randrange(12)
        if kind == 0:
            del value[key]
        elif kind == 1 and isinstance(value, list):
            changed_list(value, chance)
        elif kind == 2 and isinstance(value, dict):
            value[chance.choice(list(value))] = value[key]
        else:
            value[key] = changed_json(value[key], chance, depth + 1)
        return value
    kind = chance.randrange(4)
    if kind == 0 and isinstance(value, (int, float)):
        return value + chance.choice([-1, 1, 1000, -10**9, 10**18])
    if kind == 1:
        for _ in range(chance.choice([1, 3, 200])):
            value = [value] if chance.randrange(2) else {"children": value}
        return value
    return chance.choice(VALUES)


def records_of(data):
    """Where the records of a perf.data begin, the records, and where they end."""
    start = int.from_bytes(data[40:48], "little")
    size = int.from_bytes(data[48:56], "little")
    at, records = start, []
    while at + 8 <= min(start + size, len(data)):
        length = int.from_bytes(data[at + 6:at + 8], "little")
        if length < 8:
            break
        records.append(data[at:at + length])
        at += length
    return start, records, at


def with_records(data, start, records, end, moves_features):
    """A perf.data with other records. The table of features behind them has offsets, which lead elsewhere, as damage
    does, unless they are moved, too."""
    body = b"".join(records)
    out = bytearray(data[:start] + body + data[end:])
    out[48:56] = len(body).to_bytes(8, "little")
    features = int.from_bytes(out[72:104], "little").bit_count()
    for place in range(start + len(body), start + len(body) + 16 * features, 16):
        if moves_features and place + 8 <= len(out):
            offset = int.from_bytes(out[place:place + 8], "little") + start + len(body) - end
            out[place:place + 8] = (offset % 2**64).to_bytes(8, "little")
    return out


def shortened(content):
    """The same kind of content with fewer samples, events or lines. Recordings name no programs of this machine, whose
    symbols would take most of the time."""
    if content.startswith(b"PERFILE2"):
        content = content.replace(b"/usr/", b"/not/")
        start, records, end = records_of(content)
        # Packed records are kept, and so are all samples in them.
        every = sum(record[0] == 9 for record in records) // MOST_SAMPLES + 1
        kept, samples = [], 0
        for record in records:
            samples += record[0] == 9
            if record[0] != 9 or samples % every == 0:
                kept.append(record)
        return bytes(with_records(content, start, kept, end, True))
    if content[:1] == b"[":
        return json.dumps(json.loads(content)[:3 * MOST_SAMPLES]).encode()
    if content[:1] == b"{":
        value = json.loads(content) if len(content) > LARGEST else {}
        if "traceEvents" in value:
            return json.dumps({**value, "traceEvents": value["traceEvents"][:3 * MOST_SAMPLES]}).encode()
        return content
    if b"\0" in content[:1000] or len(content) <= LARGEST:
        return content
    return content[:content.rindex(b"\n", 0, LARGEST) + 1]


def changed_records(data, chance):
    """A perf.data whose records were dropped, doubled, moved, or have other fields; sizes fit."""
    start, records, at = records_of(data)
    if not records or data[:8] != b"PERFILE2":
        return None
    for _ in range(chance.choice([1, 2, 5, 20])):
        if chance.randrange(2) and records:
            changed_list(records, chance)
        elif records:
            which = chance.randrange(len(records))
            record = bytearray(records[which])
            place = chance.randrange(len(record) // 8) * 8
            if place == 0:
                record[0] = chance.choice([1, 3, 7, 9, 10, 17, 18, 21, 68, 73, 81, 82, record[0]])
            else:
                record[place:place + 8] = (chance.choice(LIMITS + [0, 7, 4096]) % 2**64).to_bytes(8, "little")
            records[which] = bytes(record)
    while sum(map(len, records)) > 200_000:
        del records[len(records) // 2:]
    out = with_records(data, start, records, at, chance.randrange(2))
    if chance.randrange(3) == 0:
        # The attributes: sample type, read format, flags.
        attributes = int.from_bytes(data[24:32], "little")
        place = attributes + 8 * chance.randrange(2, 8)
        out[place:place + 8] = (chance.choice(LIMITS) % 2**64 if chance.randrange(2) else 1 << chance.randrange(64)).to_bytes(8, "little")
    return bytes(out)


def changed_lines(content, chance):
    lines = content.split(b"\n")
    for _ in range(chance.choice([1, 1, 3, 10])):
        kind = chance.randrange(3)
        if kind == 0 and lines:
            changed_list(lines, chance)
        elif lines:
            at = chance.randrange(len(lines))
            words = lines[at].split(b" ")
            if kind == 1:
                changed_list(words, chance)
            else:
                words[chance.randrange(len(words))] = chance.choice(WORDS + words)
            lines[at] = b" ".join(words)
    return b"\n".join(lines)


def structured(content, others, chance):
    """Some changes to the structure, if the content has one that is known."""
    changed = None
    if content.startswith(b"PERFILE2"):
        changed = changed_records(content, chance)
    elif content.lstrip()[:1] in (b"{", b"["):
        try:
            value = json.loads(content)
            for _ in range(chance.choice([1, 1, 2, 5])):
                value = changed_json(value, chance)
            changed = json.dumps(value).encode()
        except (ValueError, RecursionError):
            pass
    elif b"\0" not in content[:1000]:
        changed = changed_lines(content, chance)
    else:
        changed = changed_message(content, chance)
    return mutated(content, others, chance) if changed is None else changed[:400_000]


def hostile(content, others, chance):
    return structured(content, others, chance) if chance.randrange(2) else mutated(content, others, chance)


def archive(recording, dump, program):
    """What pack writes, as the manifest of an archive has it."""
    files = [("data", "recording", recording, None), ("jit-31795.dump", "jitdump", dump, 31795),
             ("root/usr/bin/php", "program", program, None)]
    listed = []
    for path, role, content, pid in files:
        entry = {"path": path, "role": role, "modified": [0, 0], "size": len(content),
                 "sha256": hashlib.sha256(content).hexdigest()}
        listed.append(entry if pid is None else {**entry, "pid": pid})
    manifest = json.dumps({"version": 1, "machine": "x86_64", "host": "h", "files": listed}).encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, content in [("jitgraft-pack", b"x\n"), ("manifest.json", manifest)] + [(f[0], f[2]) for f in files]:
            about = tarfile.TarInfo(path)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    return out.getvalue()


def packed(content):
    return subprocess.run(["zstd", "-1cq"], input=content, capture_output=True, check=True).stdout


def limit():
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))


def limit_fuzzer():
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))


class Pairs:
    def __init__(self, program, seed):
        self.program, self.seed = os.path.abspath(program), seed
        self.directory = tempfile.mkdtemp(prefix="pairs-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.inputs = {format: [shortened(unpacked(name)) for name in names] for format, names in INPUTS.items()}
        self.sources = {}
        for name, (source, recording, flag) in SOURCES.items():
            content = unpacked(source)
            if name != "core":
                content = content[:LARGEST]
            name_of_file = os.path.basename(source).removesuffix(".zst")
            self.sources[name] = (content, shortened(unpacked(recording)), flag, name_of_file)
        self.others = [content for contents in self.inputs.values() for content in contents]
        self.program_file = unpacked("recording-cpp/work-cpp.zst")[:100_000]
        self.found = 0

    def pairs(self, words):
        formats = list(INPUTS) + ["archive"]
        pairs = [(command, format) for format in formats for command in ALL]
        pairs += [(command, name) for name in SOURCES for command in OF_SOURCES]
        wanted = [pair for pair in pairs if not words or any(word in pair[0] or word in pair[1] for word in words)]
        return [pair for pair in wanted if not (pair[1] == "archive" and pair[0] == ["callgrind"])]

    def files(self, format, chance):
        """The files of a run, the input's name, and words that name the others."""
        if format in self.sources:
            source, recording, flag, name = self.sources[format]
            return {"perf.data": recording, name: hostile(source, self.others, chance)}, "perf.data", [flag, name]
        if format == "archive":
            recording, dump = self.inputs["perf-data"][0], self.sources["jitdump"][0]
            whole = chance.randrange(2) == 0
            parts = [recording, dump, self.program_file]
            if not whole:
                at = chance.randrange(3)
                parts[at] = hostile(parts[at], self.others, chance)
            content = archive(*parts)
            return {"in.tar.zst": packed(hostile(content, self.others, chance) if whole else content)}, "in.tar.zst", []
        content = hostile(chance.choice(self.inputs[format]), self.others, chance)
        if format == "pprof" and chance.randrange(4) == 0:
            content = gzip.compress(content, 1)
        return {"input": content}, "input", []

    def plan(self, command, format, number, below=""):
        """The files of a run, and its words; `below` is put before the names of files in them."""
        chance = random.Random(f"{self.seed} {' '.join(command)} {format} {number}")
        files, name, more = self.files(format, chance)
        if more:
            more[1] = below + more[1]
        words = command + ["-q", "--threads", chance.choice("12"), "-i", below + name, "-o", below + "out"] + more
        if command[0] not in ("stats", "merge", "callgrind") and format not in self.sources and chance.randrange(8) == 0:
            words.append("--strict")
        if command[0] == "merge":
            words = command + ["-q", below + name, below + name, "-o", below + "out"] + more
        return files, words

    def run_all(self, command, format, numbers):
        """What the runs ended with, done by the fuzzer's program in as few processes as they allow."""
        paths = []
        for number in numbers:
            files, words = self.plan(command, format, number, "{}")
            parts = [b"\0".join(word.encode() for word in words)]
            parts += [path.encode() + b"\0" + content for path, content in files.items()] + [b"", b""]
            path = os.path.join(self.directory, f"run-{number}")
            with open(path, "wb") as file:
                file.write(b"".join(len(part).to_bytes(4, "little") + part for part in parts[:3]) + parts[3])
            paths.append(path)
        outcomes, environment = collections.Counter(), {
            **os.environ, "RUST_MIN_STACK": str(STACK), "HOME": self.directory, "JITGRAFT_TARGET": "pairs"}
        while paths:
            words = [self.program, f"-timeout={WAITING}", "-rss_limit_mb=0", f"-artifact_prefix={self.directory}/"] + paths
            process = subprocess.run(words, cwd=self.directory, env=environment, preexec_fn=limit_fuzzer,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            # The fuzzer's times are those of the clock, in which other programs run, too.
            times = [int(time) for time in re.findall(rb"\nExecuted \S+ in (\d+) ms", process.stderr)]
            done = len(times)
            for path, time in zip(paths, times):
                is_done = time < SECONDS * 1000 or self.is_done_in_time(path, environment)
                outcomes["done" if is_done else "hang"] += 1
                if not is_done:
                    self.keep_run(command, format, path, "hang", 0, b"")
            if process.returncode == 0:
                break
            said = process.stderr.rpartition(b"\nExecuted ")[2]
            if b"panicked at" in said:
                outcome = "panic"
            elif b"memory" in said and process.returncode in (1, 77):
                outcome = "memory"
            elif b"libFuzzer: timeout" in said:
                outcome = "hang"
            else:
                outcome = "killed"
            outcomes[outcome] += 1
            if outcome in ("panic", "killed", "hang"):
                self.keep_run(command, format, paths[done], outcome, process.returncode, said)
            paths = paths[done + 1:]
        for entry in os.scandir(self.directory):
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
        return outcomes

    def is_done_in_time(self, path, environment):
        """True if a run takes less than 10 seconds of processor time."""
        words = [self.program, f"-timeout={WAITING}", "-rss_limit_mb=0", f"-artifact_prefix={self.directory}/", path]
        try:
            process = subprocess.run(words, cwd=self.directory, env=environment, preexec_fn=limit, timeout=WAITING,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return False
        return process.returncode == 0

    def run(self, command, format, number):
        """What a run ended with: ok, error, usage; panic, signal or hang."""
        files, words = self.plan(command, format, number)
        for path, content in files.items():
            with open(os.path.join(self.directory, path), "wb") as file:
                file.write(content)
        words = [self.program] + words
        environment = {**os.environ, "RUST_MIN_STACK": str(STACK), "HOME": self.directory}
        process = subprocess.Popen(words, cwd=self.directory, env=environment, preexec_fn=limit, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        try:
            _, said = process.communicate(timeout=WAITING)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            _, said = process.communicate()
            status = "hang"
        outcomes = {0: "ok", 1: "error", 2: "usage", 101: "panic", -signal.SIGKILL: "hang", -signal.SIGXCPU: "hang"}
        outcome = "hang" if status == "hang" else outcomes.get(status, "killed")
        if b"panicked at" in said:
            outcome = "panic"
        if outcome in ("panic", "killed", "hang"):
            self.keep(files, words, outcome, status, said)
        for entry in os.scandir(self.directory):
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
        return outcome

    def keep_run(self, command, format, path, outcome, status, said):
        """Keeps a run of the fuzzer's program, with the files and words of the same run of the program."""
        with open(path, "rb") as file:
            content = {"run": file.read()}
        files, plain = self.plan(command, format, int(path.rpartition("-")[2]))
        self.keep({**content, **files}, [self.program] + plain, outcome, status, said)

    def keep(self, files, words, outcome, status, said):
        self.found += 1
        kept = os.path.join("pairs-found", str(self.found))
        os.makedirs(kept, exist_ok=True)
        for path, content in files.items():
            with open(os.path.join(kept, path), "wb") as file:
                file.write(content)
        print(f"{outcome} ({status}): {kept}: {' '.join(words[1:])}\n{said[-600:].decode(errors='replace')}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log")
    parser.add_argument("--fuzzer", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    pairs = Pairs(options.program, options.seed)
    wanted = pairs.pairs(options.words)
    counts = {(" ".join(command), format): collections.Counter() for command, format in wanted}
    try:
        # All pairs by turns, which grow: a run that is ended early has tried all of them.
        end = 0
        while end < options.runs:
            start, end = end, min(end + min(max(end, 5), 50), options.runs)
            for command, format in wanted:
                count = counts[" ".join(command), format]
                numbers = range(start, end)
                if options.fuzzer:
                    count.update(pairs.run_all(command, format, numbers))
                else:
                    count.update(pairs.run(command, format, number) for number in numbers)
            if options.log:
                with open(options.log, "a") as log:
                    whole = sum(counts.values(), collections.Counter())
                    log.write(f"{end} of {options.runs} runs of {len(wanted)} pairs: {dict(whole)}\n")
    finally:
        shutil.rmtree(pairs.directory)
        for (command, format), count in counts.items():
            print(f"{command}\t{format}\t" + "\t".join(f"{outcome} {number}" for outcome, number in sorted(count.items())))
        whole = sum(counts.values(), collections.Counter())
        print(f"{whole.total()} runs of {len(wanted)} pairs: {dict(whole)}", flush=True)
    sys.exit(1 if pairs.found else 0)


main()
