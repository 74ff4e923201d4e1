#!/usr/bin/env python3
"""Compares the names that perf and jitgraft give to each frame of fresh recordings: JIT code, native code and the kernel.

    compare.py JITGRAFT [CELL…]

Each cell of CELLS is a program of places/programs, a runtime of places/runtimes.sh and options of perf record; RUNTIMES is the directory of
places/get.sh. perf is taken at its best: a frame has the name after `perf inject --jit`, or the one without. jitgraft's names are
those that perf shows after `jitgraft inject`, so that addresses and stacks are perf's. The columns:

    frames     compared: addresses that both stacks of a sample have, from the innermost frame on
    jit        of these, in memory for JIT code
    same       named by both, alike; unnamed by both are the rest
    perf-only, only, differ
               named by perf only, by jitgraft only, by both but differently
    other      frames behind the first address that the stacks do not share (unwound stacks)
    perf-wrong, wrong
               frames of JIT code with another name than the dump of that moment, or the map, has: perf's, jitgraft's
    script     frames that `jitgraft script` calls otherwise than perf does after `jitgraft inject`, of stacks of equal length
               (perf looks up return addresses as they are, not the call before them)
    early, lag frames at addresses for which a dump of the same program has its first code only later, and by how many
               milliseconds at most. Not all of them are code: a register that a chain takes for a frame pointer may hold the
               address of code that is being made

Examples of what differs go to standard error, summed by what was in memory there. Exits with 1 if jitgraft has a wrong name.
KEEP=DIRECTORY keeps the recordings. Needs perf with Python. The look-up is that of places/judge.py.
"""
import collections
import os
import shutil
import subprocess
import sys
import tempfile

TOOLS = os.path.dirname(os.path.abspath(__file__))
PLACES = os.path.join(TOOLS, "places")
sys.path.insert(0, PLACES)
import judge  # noqa: E402

FP, DWARF, MONO = "--call-graph fp", "--call-graph dwarf,16384", "-k mono"
# Name: runtime, program or None for the usual one, seconds, options, what precedes the command.
CELLS = {
    "node-fp": ("node-dump", None, 3, f"{MONO} {FP}", ""),
    "node-dwarf": ("node-dump", None, 2, f"{MONO} {DWARF}", ""),
    "node-map-fp": ("node-map", None, 3, f"{MONO} {FP}", ""),
    "node-map-dwarf": ("node-map", None, 2, f"{MONO} {DWARF}", ""),
    "node-other-clock": ("node-dump", "churn.js", 3, FP, ""),
    "node-map-other-clock": ("node-map", None, 2, FP, ""),
    "node-churn": ("node-dump", "churn.js", 5, f"{MONO} {FP}", ""),
    "node-churn-dwarf": ("node-dump", "churn.js", 3, f"{MONO} {DWARF}", ""),
    "node-churn-map": ("node-map", "churn.js", 3, f"{MONO} {FP}", ""),
    "node-threads": ("node-dump", "threads.js", 3, f"{MONO} {FP}", ""),
    "node-forked": ("node-dump", "churn.js", 2, f"{MONO} {FP}", "sh -c"),
    "node-short": ("node-dump", None, 0.2, f"{MONO} {FP}", ""),
    "node18-churn": ("node18-dump", "churn.js", 3, f"{MONO} {FP}", ""),
    "node22-threads-dwarf": ("node22-dump", "threads.js", 2, f"{MONO} {DWARF}", ""),
    "node24-churn": ("node24-dump", "churn.js", 3, f"{MONO} {FP}", ""),
    "node25-exec": ("node25-dump", "again.js", 4, f"{MONO} {FP}", "setarch -R"),
    "node25-map-exec": ("node25-map", "again.js", 4, f"{MONO} {FP}", "setarch -R"),
    "deno": ("deno-dump", None, 3, f"{MONO} {FP}", ""),
    "bun": ("bun-dump", None, 3, f"{MONO} {FP}", ""),
    "java-map-fp": ("java-map", None, 4, f"{MONO} {FP}", ""),
    "java-map-dwarf": ("java-map", None, 3, f"{MONO} {DWARF}", ""),
    "java21-map": ("java21-map", None, 4, f"{MONO} {FP}", ""),
    "java25-map": ("java25-map", None, 4, FP, ""),
    "php": ("php-dump", None, 3, f"{MONO} {FP}", ""),
    "php-dwarf": ("php-dump", None, 2, f"{MONO} {DWARF}", ""),
    "php-map": ("php-map", None, 3, f"{MONO} {FP}", ""),
    "erlang": ("erlang-dump", None, 3, f"{MONO} {FP}", ""),
    "erlang-map-dwarf": ("erlang-map", None, 2, f"{MONO} {DWARF}", ""),
    "python3.12-map": ("python3.12-map", None, 3, f"{MONO} {FP}", ""),
    "python3.12-map-exec": ("python3.12-map", "again.py", 4, f"{MONO} {DWARF}", "setarch -R"),
    "python3.13-dwarf": ("python3.13-dump", None, 2, f"{MONO} {DWARF}", ""),
    "python3.13-other-clock": ("python3.13-dump", None, 2, FP, ""),
    "python3.13-exec": ("python3.13-dump", "again.py", 4, f"{MONO} {DWARF}", "setarch -R"),
    "python3.13-prefork": ("python3.13-prefork-dump", None, 2, f"{MONO} {FP}", ""),
    "wasmtime": ("wasmtime-dump", None, 3, f"{MONO} {FP}", ""),
    "wasmtime-map-dwarf": ("wasmtime-map", None, 2, f"{MONO} {DWARF}", ""),
    "lli": ("lli-dump", None, 3, f"{MONO} {FP}", ""),
    "postgres": ("postgres-dump", None, 3, f"{MONO} {FP}", ""),
    "raku-map": ("raku-map", None, 3, f"{MONO} {FP}", ""),
    "mono-map": ("mono-map", None, 3, f"{MONO} {FP}", ""),
}
COLUMNS = "cell samples frames jit same perf-only only differ other perf-wrong wrong script early lag".split()
# Without a common clock, a dump's times are known to this many nanoseconds.
UNSURE = 2_000_000


def command_of(runtime, program, seconds, shared):
    script = f". {PLACES}/runtimes.sh; programs={PLACES}/programs dir={shared}; command_of {runtime} {seconds}"
    found = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    command = found.stdout.strip() if found.returncode == 0 else ""
    work = next((word for word in command.split() if "/programs/work." in word), "")
    return command.replace(work, f"{PLACES}/programs/{program}") if program else command


def record(cell, options, before, command):
    words = ["sh", "-c", f"{command} & wait"] if before == "sh -c" else before.split() + command.split()
    perf = ["timeout", "120", "perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-o", "p.data", *options.split(), "--", *words]
    with open(f"{cell}/said-record", "w") as said:
        subprocess.run(perf, cwd=cell, stdout=said, stderr=said)


def keep_artefacts(recording, cell, truth):
    """Copies what the recorded processes left, under the recording's numbers."""
    os.makedirs(truth)
    pids = {pid for _, pid, _ in recording.samples}
    places = [(where, name) for where, _, names in os.walk(cell) for name in names]
    places += [("/tmp", name) for name in os.listdir("/tmp")]
    for pid in pids:
        for where, name in places:
            dump = name.startswith("jit-") and name.endswith(f"-{pid}.dump") or name == f"jit-{pid}.dump"
            if (dump or name == f"perf-{pid}.map") and os.path.getsize(f"{where}/{name}"):
                shutil.copy(f"{where}/{name}", f"{truth}/{pid}.{'dump' if dump else 'map'}")


def at_home(cell):
    """perf keeps a copy of each image below the home directory."""
    return {**os.environ, "HOME": cell}


def remove_artefacts(truth):
    """Removes what runtimes left in /tmp."""
    for name in os.listdir(truth):
        pid, _, kind = name.partition(".")
        for path in (f"/tmp/perf-{pid}.map", f"/tmp/perfinfo-{pid}.map") if kind == "map" else (f"/tmp/jit-{pid}.dump",):
            if os.path.exists(path):
                os.remove(path)


def frames_of(cell, data):
    """(time, pid, tid) → the stacks of these samples, of (address, name or None, file)."""
    command = ["perf", "script", "-i", data, "--no-inline", "-s", f"{TOOLS}/frames.py"]
    shown = subprocess.run(command, cwd=cell, env=at_home(cell), capture_output=True, timeout=300)
    samples = {}
    for line in shown.stdout.split(b"\n"):
        if line.startswith(b"\t"):
            addr, name = line[1:].split(b"\t", 1)
            name, file = name.rsplit(b"\t", 1)
            stack.append((int(addr, 16), None if name in (b"", b"[unknown]") else name, file))
        elif line:
            pid, tid, time = map(int, line.split())
            stack = []
            samples.setdefault((time, pid, tid), []).append(stack)
    return samples


def script_of(jitgraft, cell):
    """The same of `jitgraft script`, names only."""
    command = [jitgraft, "script", "--no-inline", "--ns", "-F", "pid,tid,time,ip,sym,dso", "p.data"]
    text = subprocess.run(command, cwd=cell, env=at_home(cell), capture_output=True, check=True).stdout
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        samples = {}
        for key, frames in judge.shown(file.name):
            samples.setdefault(key, []).append([None if name == judge.UNKNOWN else name for name, _ in frames])
    return samples


class Names:
    """What dumps and maps call an address."""

    def __init__(self, recording, directory, shift):
        self.truth, self.shift = judge.Truth(recording, directory), shift

    def of(self, pid, addr, time):
        """All that may be right: one name, or none, where the clocks are the same."""
        if self.shift is None:
            return {self.truth.names(pid, addr, time)[0] or None}
        return {self.truth.names(pid, addr, time - self.shift + by)[0] or None for by in (-UNSURE, 0, UNSURE)}


    def lag(self, pid, addr, time):
        """How long before the first code of its program's dump an address without code was sampled."""
        layers = self.truth.dumps.get(pid)
        if layers is None or self.shift is not None:
            return None
        execs = [exec for exec in self.truth.recording.execs.get(pid, ()) if exec > time]
        later = [begin for begin, start, end, name in layers.pages.get(addr >> judge.PAGE, ()) if begin > time and start <= addr < end and name]
        return min(later) - time if later and min(later) < min(execs, default=2**64) else None


def shift_of(recording, truth):
    """From a dump's clock to the recording's, by when the dump was mapped: of the first dump."""
    for name in sorted(os.listdir(truth)):
        if name.endswith(".dump"):
            pid = int(name.split(".")[0])
            mapped = [time for time, _, _, path in recording.maps.get(pid, ()) if path.endswith(b".dump")]
            if mapped:
                return mapped[0] - int.from_bytes(open(f"{truth}/{name}", "rb").read(32)[24:], "little")
    return None


class Comparison:
    def __init__(self, names):
        self.names, self.count, self.examples = names, collections.Counter(), collections.Counter()

    def example(self, what, frame, perf, ours, right):
        file = frame[2].decode("utf-8", "replace").replace(".so", "")
        place = "jitted" if "jitted-" in file else os.path.basename(file)
        if what in ("wrong", "perf-wrong"):
            self.examples[what, place, ours if what == "wrong" else perf, str(right)] += 1
        else:
            self.examples[what, place, perf, ours] += 1

    def sample(self, key, plain, injected, ours):
        time, pid, _ = key
        best = {addr: name for addr, name, _ in plain}
        best.update((addr, name) for addr, name, _ in injected if name)
        shared = 0
        for theirs, frame in zip(injected or plain, ours):
            if theirs[0] != frame[0]:
                break
            shared += 1
            self.frame(pid, time, frame, best.get(frame[0]))
        self.count["other"] += max(len(injected), len(ours)) - shared

    def frame(self, pid, time, frame, perf):
        addr, name, file = frame
        # If no name was injected, perf looks into the map itself.
        name = None if os.path.basename(file).startswith(b"perf-") else name
        self.count["frames"] += 1
        what = {(True, True): "same" if perf == name else "differ", (True, False): "perf-only", (False, True): "only"}.get((perf is not None, name is not None))
        if what:
            self.count[what] += 1
        right = set()
        if addr < 2**63 and self.names.truth.in_jit(pid, addr, time):
            self.count["jit"] += 1
            right = self.names.of(pid, addr, time)
            lag = self.names.lag(pid, addr, time) if right == {None} else None
            if lag is not None:
                self.count["early"] += 1
                self.count["lag"] = max(self.count["lag"], lag)
            for whose, wrong in (("perf-wrong", perf), ("wrong", name)):
                if wrong is not None and wrong not in right:
                    self.count[whose] += 1
                    self.example(whose, frame, perf, name, right)
        if what not in (None, "same"):
            self.example(what, frame, perf, name, right)


def compare(jitgraft, cell, options):
    recording = judge.Recording(f"{cell}/p.data")
    keep_artefacts(recording, cell, f"{cell}/truth")
    shift = None if MONO in options else shift_of(recording, f"{cell}/truth")
    subprocess.run(["perf", "inject", "-j", "-i", "p.data", "-o", "perf.data"], cwd=cell, env=at_home(cell), capture_output=True)
    plain, injected = frames_of(cell, "p.data"), frames_of(cell, "perf.data")
    with open(f"{cell}/said", "w") as said:
        subprocess.run([jitgraft, "inject", "-i", "p.data", "-o", "ours.data"], cwd=cell, env=at_home(cell), stderr=said, check=True)
    ours = frames_of(cell, "ours.data")
    script = script_of(jitgraft, cell)
    comparison = Comparison(Names(recording, f"{cell}/truth", shift))
    for key, stacks in ours.items():
        for nth, stack in enumerate(stacks):
            of = lambda samples: (samples.get(key, [])[nth : nth + 1] or [[]])[0]
            comparison.count["samples"] += 1
            comparison.sample(key, of(plain), of(injected), stack)
            own = of(script)
            if len(own) == len(stack):
                for name, frame in zip(own, stack):
                    if name != frame[1]:
                        comparison.count["script"] += 1
                        comparison.example("script", frame, name, frame[1], None)
    remove_artefacts(f"{cell}/truth")
    return comparison


def main():
    jitgraft, asked = os.path.realpath(sys.argv[1]), sys.argv[2:] or list(CELLS)
    totals, recorded = collections.Counter(), 0
    print(*COLUMNS, sep="\t", flush=True)
    with tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as directory:
        os.chmod(directory, 0o755)
        for name in asked:
            runtime, program, seconds, options, before = CELLS[name]
            command = command_of(runtime, program, seconds, directory)
            if not command:
                print(f"{name}: not here", flush=True)
                continue
            cell = f"{directory}/{name}"
            os.mkdir(cell)
            record(cell, options, before, command)
            comparison = compare(jitgraft, cell, options)
            recorded += 1
            totals.update({column: count for column, count in comparison.count.items() if column != "lag"})
            comparison.count["lag"] /= 1e6
            print(name, *(comparison.count[column] for column in COLUMNS[1:]), sep="\t", flush=True)
            for (what, place, perf, ours), count in comparison.examples.most_common(12):
                print(f"{name}: {what} {count}× in {place}: {perf} / {ours}", file=sys.stderr)
            if "KEEP" in os.environ:
                shutil.copytree(cell, f"{os.environ['KEEP']}/{name}", dirs_exist_ok=True)
            shutil.rmtree(cell, ignore_errors=True)
    print(f"all {recorded}", *(totals[column] for column in COLUMNS[1:]), sep="\t")
    sys.exit(1 if totals["wrong"] or not recorded else 0)


main()
