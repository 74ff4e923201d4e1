"""The jobs: how each side does them, on what, and whether both come to the same."""

import collections
import gzip
import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from typing import Callable

import inputs

ALL = 1 << 30


@dataclass
class Peer:
    """A program beside us."""

    name: str
    tool: str
    goal: str
    # Of a `Given` and a number of threads, the stages of a pipeline.
    command: Callable
    # Larger inputs take it minutes.
    largest: int = ALL
    # Whether it can be told to use threads.
    parallel: bool = False


@dataclass
class Job:
    id: str
    name: str
    needs: str
    # Of a `Place` and a size, a `Given`.
    make: Callable
    # Of our program, a `Given` and a number of threads, the stages.
    ours: Callable
    peers: list = field(default_factory=list)
    # Of our program and a `Given`: in words how far the outputs are the same.
    compare: Callable = None


def stdout_of(stages, given):
    """What a pipeline prints."""
    data = None
    for stage in stages:
        done = subprocess.run(stage, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=given.environment)
        data = done.stdout
    return data


def percent(equal, all):
    return f"{equal:,} of {all:,}" if all else "nothing to compare"


NAMELESS = (b"[unknown]", b"[truncated]")


def same_folded(ours, its):
    """How much of the weight stands in lines that both have. Frames without a name, and the mark of a stack that ends
    before its beginning, are spelled in as many ways as there are programs: they are left out."""

    def weights(text):
        sums = collections.defaultdict(float)
        for line in text.splitlines():
            stack, weight = line.rsplit(b" ", 1)
            sums[b";".join(frame for frame in stack.split(b";") if frame not in NAMELESS)] += float(weight)
        return sums

    one, other = weights(ours), weights(its)
    same = sum(min(weight, other.get(stack, 0)) for stack, weight in one.items())
    total = max(sum(one.values()), sum(other.values()))
    return f"{100 * same / total:.2f} % of the weight in equal lines" if total else "nothing to compare"


def collapsed(program, given, *options):
    return stdout_of([[program, "collapse", *options, given.path]], given)


# inject -----------------------------------------------------------------------------------------------------------


def inject(program, given, threads):
    return [[program, "inject", "-f", "--threads", str(threads), "-i", given.path, "-o", given.result]]


PERF_INJECT = lambda given, _: [["perf", "inject", "--jit", "-f", "-i", given.path, "-o", given.result]]
CP = lambda given, _: [["cp", "--reflink=never", given.path, given.result]]


def names_as_perf_reads_them(program, given, *options):
    """The names of frames in both results as perf script prints them."""
    if given.size > 64e6:
        return "as at ×1"

    def printed(stages):
        subprocess.run(stages[0], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=given.environment, check=True)
        script = ["perf", "script", "--no-inline", *options, "-F", "ip,sym", "-i", given.result]
        # Addresses are those in the image, which are nobody's but its maker's.
        return [line.split(None, 1)[1:] for line in stdout_of([script], given).split(b"\n")]

    ours, its = printed(inject(program, given, 2)), printed(PERF_INJECT(given, 2))
    if len(ours) != len(its):
        return f"{len(ours):,} lines against {len(its):,}"
    frames = [(one, other) for one, other in zip(ours, its) if other]
    worse = sum(one == [b"[unknown]"] != other for one, other in frames)
    return f"{percent(sum(one == other for one, other in frames), len(frames))} frames, {worse} named only by perf"


def leaves_as_perf_reads_them(program, given):
    """Where perf would unwind stack copies by the unwinding data of either: the innermost frames."""
    return names_as_perf_reads_them(program, given, "-G")


def recorded(name):
    return lambda place, times: place.given(place.repeated(name, times))


def loads(count, *words, sizes=(1,)):
    def make(place, times):
        if times not in sizes:
            raise inputs.Missing("one size only")
        path = place.generated(f"loads-{count * times}-{'-'.join(words)}".replace("=", "-"), str(count * times), *words)
        return place.given(path)

    return make


def named(name):
    """A recording whose names are in it, so that perf has them, too."""

    def make(place, times):
        path = place.repeated(name, times)
        inject = lambda new: subprocess.run([place.program, "inject", "-q", "-f", "-i", path, "-o", new], check=True)
        return place.given(place.made(f"{name}-{times}.named.data", inject))

    return make


def script_fields(given):
    return ["perf", "script", "--no-inline", "-f", "-i", given.path]


# Text --------------------------------------------------------------------------------------------------------------


def text(samples, distinct):
    def make(place, times):
        name = f"text-{distinct or 'all'}-{times}.txt"
        count = samples * times
        return place.given(place.made(name, lambda new: inputs.script_text(new, count, distinct or count)))

    return make


INFERNO = lambda given, threads: [["inferno-collapse-perf", "-n", str(threads), given.path]]


def same_as_inferno(program, given):
    if given.size > 600e6:
        return "as at ×1"
    return same_folded(collapsed(program, given), stdout_of(INFERNO(given, 2), given))


def same_pictures(program, given):
    """The samples that both pictures say they show."""

    def total(picture):
        shown = re.search(rb"all \(([0-9,]+) samples", picture) or re.search(rb"([0-9,]+) samples", picture)
        return shown.group(1).decode() if shown else "none"

    ours = total(stdout_of([[program, "flamegraph", given.path]], given))
    its = total(stdout_of([["inferno-flamegraph", given.path]], given))
    return f"{ours} samples" if ours == its else f"{ours} samples against {its}"


def pipeline(given, threads):
    return [script_fields(given), ["inferno-collapse-perf", "-n", str(threads)], ["inferno-flamegraph"]]


def same_stacks(program, given):
    if given.size > 64e6:
        return "as at ×1"
    its = stdout_of([script_fields(given), ["inferno-collapse-perf"]], given)
    return same_folded(collapsed(program, given, "--no-inline"), its)


def flamegraph(*options):
    return lambda program, given, threads: [
        [program, "flamegraph", *options, "--threads", str(threads), given.path, "-o", given.result]
    ]


def collapse(*options):
    return lambda program, given, threads: [[program, "collapse", *options, "--threads", str(threads), given.path]]


def same_bytes(program, given):
    """Where there is nothing to name, what comes out is what went in."""
    with open(given.path, "rb") as file, open(given.out, "wb") as out:
        subprocess.run([program, "script"], stdin=file, stdout=out, stderr=subprocess.DEVNULL, check=True)
    return "the same bytes" if subprocess.run(["cmp", "-s", given.path, given.out]).returncode == 0 else "other bytes"


# What is not perf's --------------------------------------------------------------------------------------------------


def callgrind_of(functions):
    def make(place, times):
        made = place.made(f"callgrind-{functions * times}", lambda new: inputs.callgrind(new, functions * times))
        return place.given(os.path.join(made, "callgrind.out.7"))

    return make


def callgrind_totals(program, given):
    """The costs that callgrind_annotate reads out of what we wrote."""
    subprocess.run(callgrind(program, given, 2)[0], check=True, env=given.environment, stderr=subprocess.DEVNULL)

    def total(path):
        with open(path, "rb") as file:
            lines = [line for line in file if line[:1].isdigit() or line.startswith(b"calls=")]
        own, called = 0, False
        for line in lines:
            if line[:1].isdigit() and not called:
                own += int(line.split()[2])
            called = line.startswith(b"calls=")
        return own

    one, other = total(given.path), total(given.result)
    return f"{one:,} Ir in both" if one == other else f"{one:,} Ir against {other:,}"


def callgrind(program, given, threads):
    return [[program, "callgrind", "--threads", str(threads), given.path, "-o", given.result]]


def trace(place, times):
    return place.given(place.made(f"trace-{times}.json", lambda new: inputs.trace(new, 200_000 * times)))


def profdata(place, times):
    if times > 1:
        raise inputs.Missing("one size only")
    path = place.at("recordings", "measureme", "profile.mm_profdata")
    if not os.path.exists(path):
        raise inputs.Missing("no recordings/measureme/profile.mm_profdata")
    return place.given(path)


def firefox_samples(program, given):
    """Samples of all threads in both profiles."""
    if given.size > 64e6:
        return "as at ×1"

    def count(path):
        with open(path, "rb") as file:
            data = file.read()
        profile = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        return sum(len(thread["samples"]["stack"]) for thread in profile["threads"])

    subprocess.run(export(program, given, 2)[0], check=True, env=given.environment, stderr=subprocess.DEVNULL)
    ours = count(given.result)
    subprocess.run(SAMPLY(given, 2)[0], check=True, env=given.environment, stderr=subprocess.DEVNULL)
    return f"{ours:,} samples against {count(given.result):,}"


def export(program, given, threads):
    return [[program, "export", "--to", "firefox", "--threads", str(threads), given.path, "-o", given.result]]


SAMPLY = lambda given, _: [["samply", "import", "--save-only", "--no-open", "-o", given.result, given.path]]

PERFS = "perf"

JOBS = [
    Job(
        "inject-samples",
        "inject, frame pointers, tsc under node",
        "recordings/tsc: perf.data with frame pointers and its jitdump",
        recorded("tsc"),
        inject,
        [Peer("perf inject --jit", PERFS, "≥ 4×", PERF_INJECT), Peer("cp", "cp", "≥ 0.33×", CP)],
        names_as_perf_reads_them,
    ),
    Job(
        "inject-stacks",
        "inject, stack copies, node",
        "recordings/stacks: perf.data with --call-graph dwarf and its jitdump",
        recorded("stacks"),
        inject,
        [Peer("perf inject --jit", PERFS, "≥ 4×", PERF_INJECT), Peer("cp", "cp", "≥ 0.5×", CP)],
        leaves_as_perf_reads_them,
    ),
    Job(
        "inject-loads",
        "inject, loads with moves in 40 MB",
        "nothing",
        loads(100_000, "200000", "moves", "heap=40000000", sizes=(1, 10)),
        inject,
        [Peer("perf inject --jit", PERFS, "≥ 100×", PERF_INJECT, largest=1)],
        names_as_perf_reads_them,
    ),
    Job(
        "inject-reuse",
        "inject, loads with moves in 4 MB",
        "nothing",
        lambda place, times: loads(100_000 * (4 if times == 10 else 1), "100000", "moves", "heap=4194304", sizes=(1,))(
            place, 1 if times in (1, 10) else times
        ),
        inject,
        [Peer("perf inject --jit", PERFS, "≥ 25×", PERF_INJECT)],
        names_as_perf_reads_them,
    ),
    Job(
        "collapse-few",
        "collapse, perf script's text, 2,000 distinct stacks",
        "nothing",
        text(30_000, 2_000),
        collapse(),
        [Peer("inferno-collapse-perf", "inferno-collapse-perf", "≥ 5×", INFERNO, parallel=True)],
        same_as_inferno,
    ),
    Job(
        "collapse-many",
        "collapse, perf script's text, all stacks distinct",
        "nothing",
        text(30_000, 0),
        collapse(),
        [Peer("inferno-collapse-perf", "inferno-collapse-perf", "≥ 3×", INFERNO, parallel=True)],
        same_as_inferno,
    ),
    Job(
        "folded-svg",
        "folded stacks → SVG",
        "nothing",
        lambda place, times: place.given(
            place.made(f"folded-{times}.txt", lambda new: inputs.folded(new, 60_000 * times))
        ),
        flamegraph(),
        [Peer("inferno-flamegraph", "inferno-flamegraph", "≥ 4×", lambda given, _: [["inferno-flamegraph", given.path]])],
        same_pictures,
    ),
    Job(
        "perf-svg",
        "perf.data → SVG, tsc under node",
        "recordings/tsc",
        named("tsc"),
        flamegraph("--no-inline"),
        [Peer("perf script, inferno", "inferno-flamegraph", "≥ 25×; 1 GB ≥ 60×", pipeline, largest=10, parallel=True)],
        same_stacks,
    ),
    *(
        Job(
            f"native-{name}",
            f"perf.data → SVG, {name}, frame pointers, inlined calls",
            f"recordings/{name}",
            recorded(name),
            flamegraph(),
            [
                Peer(
                    "perf script with inlined calls, inferno",
                    "inferno-flamegraph",
                    goal,
                    lambda given, threads: [["perf", "script", "-f", "-i", given.path], *pipeline(given, threads)[1:]],
                    largest=1,
                    parallel=True,
                )
            ],
            lambda program, given: same_folded(
                collapsed(program, given), stdout_of([["perf", "script", "-i", given.path], ["inferno-collapse-perf"]], given)
            ),
        )
        for name, goal in (("rust", "≥ 100×"), ("cpp", "≥ 50×"))
    ),
    *(
        Job(
            f"dwarf-{name}",
            f"collapse, DWARF stacks, {name}",
            f"recordings/dwarf-{name}: perf.data with --call-graph dwarf, and its dump",
            named(f"dwarf-{name}"),
            collapse("--no-inline"),
            [
                Peer(
                    "perf script --no-inline, inferno",
                    "inferno-collapse-perf",
                    "≥ 15×",
                    lambda given, threads: pipeline(given, threads)[:2],
                    largest=1,
                    parallel=True,
                )
            ],
            same_stacks,
        )
        for name in ("cpp", "node", "java", "php", "erlang")
    ),
    Job(
        "firefox",
        "export to Firefox Profiler, tsc under node",
        "recordings/tsc",
        recorded("tsc"),
        export,
        [Peer("samply import", "samply", "≥ 20×", SAMPLY)],
        firefox_samples,
    ),
    Job(
        "script",
        "script as a filter, nothing to name",
        "nothing",
        text(30_000, 2_000),
        lambda program, given, threads: [[program, "script", "--threads", str(threads), given.path]],
        [
            Peer("cat", "cat", "≥ 0.83×", lambda given, _: [["cat", given.path]]),
            Peer(
                "inferno-collapse-perf -n 1, which only reads it",
                "inferno-collapse-perf",
                "≥ 12×",
                lambda given, _: INFERNO(given, 1),
            ),
        ],
        same_bytes,
    ),
    Job(
        "callgrind",
        "callgrind",
        "nothing",
        callgrind_of(16_575),
        callgrind,
        [
            Peer("wc -l", "wc", "≥ 0.2×", lambda given, _: [["wc", "-l", given.path]]),
            Peer(
                "callgrind_annotate, which only reads it",
                "callgrind_annotate",
                "≥ 100×",
                lambda given, _: [["callgrind_annotate", given.path]],
                largest=1,
            ),
        ],
        callgrind_totals,
    ),
    Job(
        "trace",
        "stats of trace events",
        "nothing",
        trace,
        lambda program, given, threads: [[program, "stats", "--threads", str(threads), given.path]],
        [
            Peer(
                "trace_processor_shell, loading it",
                "trace_processor_shell",
                "≥ 25×",
                lambda given, _: [["trace_processor_shell", "-Q", "select count(*) from slice", given.path]],
            )
        ],
    ),
    Job(
        "measureme",
        "collapse, measureme",
        "recordings/measureme: profile.mm_profdata",
        profdata,
        collapse(),
        [
            Peer(
                "stack_collapse",
                "stack_collapse",
                "≥ 15×",
                lambda given, _: [["stack_collapse", given.path.removesuffix(".mm_profdata")]],
            )
        ],
    ),
]
