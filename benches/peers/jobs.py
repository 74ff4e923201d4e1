"""The jobs: how each side does them, on what, and whether both come to the same."""

import os

import commands
import inputs
import outputs
from kinds import Job, Peer

BOTH = (1, 2)
INFERNO = "inferno-collapse-perf"


def script_beside_inferno(goal):
    return Peer(f"{INFERNO} -n 1, which only reads it", INFERNO, goal, commands.inferno_alone)


def injecting(id, name, recording, needs, largest, fraction, *options):
    return Job(
        id,
        f"inject, {name}",
        f"recordings/{recording}: {needs}",
        commands.recorded(recording),
        commands.inject,
        [
            Peer("perf inject --jit", "perf", "≥ 4×", commands.perf_inject("perf")),
            Peer("newer perf inject --jit", "perf7", "≥ 4×", commands.perf_inject("perf7")),
            Peer("cp", "cp", fraction, commands.copy),
        ],
        outputs.same_names(*options),
        (1, 10, largest),
    )


def loading(id, name, goal, samples, heap, sizes, slow):
    """perf from 7 on ends where code moves."""
    return Job(
        id,
        f"inject, loads with moves in {name}",
        "nothing",
        commands.loads(100_000, samples, "moves", f"heap={heap}"),
        commands.inject,
        [Peer("perf inject --jit", "perf", goal, commands.perf_inject("perf"), slow=slow)],
        outputs.same_names(),
        sizes,
    )


def collapsing(id, name, goal, distinct):
    return Job(
        id,
        f"collapse, perf script's text, {name}",
        "nothing",
        commands.text(30_000, distinct),
        commands.ours("collapse", result=False),
        [Peer(INFERNO, INFERNO, goal, commands.inferno, BOTH)],
        outputs.same_stacks(commands.inferno),
        (1, 10, 35),
        600e6,
    )


def native(name, goal):
    """The newest perf is the one to beat: it reads debugging information with less help of other programs."""
    pipeline = commands.perf_script("perf7")
    return Job(
        f"native-{name}",
        f"perf.data → SVG, {name}, frame pointers, inlined calls",
        f"recordings/{name}: perf.data with frame pointers, by perf7, of a program with debugging information that is here",
        commands.recorded(name),
        commands.ours("flamegraph"),
        [Peer("newest perf script, inferno", "perf7", goal, pipeline)],
        outputs.same_native(commands.perf_collapse("perf7"), commands.perf_collapse("perf7", "--no-inline")),
        (1, 10),
    )


def dwarf(name):
    collapse = commands.perf_collapse("perf", "--no-inline")
    return Job(
        f"dwarf-{name}",
        f"collapse, DWARF stacks, {name}",
        f"recordings/dwarf-{name}: perf.data with --call-graph dwarf, and its dump",
        commands.named(f"dwarf-{name}"),
        commands.ours("collapse", "--no-inline", result=False),
        [Peer("perf script --no-inline, inferno", INFERNO, "≥ 15×", collapse, BOTH)],
        outputs.same_stacks(collapse, "--no-inline"),
    )


def measureme(id, name, needs, make):
    return Job(
        id,
        f"collapse, measureme, {name}",
        needs,
        make,
        commands.ours("collapse", result=False),
        [Peer("stack_collapse", "stack_collapse", "≥ 15×", commands.stack_collapse)],
        outputs.same_calls,
        (1,),
        1e9,
    )


JOBS = [
    injecting(
        "inject-samples",
        "frame pointers, tsc under node",
        "tsc",
        "perf.data with frame pointers and its jitdump",
        80,
        "≥ 0.33×",
    ),
    # The stacks that perf would unwind from copies, by the unwinding data of either: the innermost frames.
    injecting(
        "inject-stacks",
        "stack copies, node",
        "stacks",
        "perf.data with --call-graph dwarf and its jitdump",
        40,
        "≥ 0.5×",
        "-G",
    ),
    loading("inject-loads", "40 MB", "≥ 100×", 200_000, 40_000_000, (1, 10), (10,)),
    loading("inject-reuse", "4 MB", "≥ 25×", 100_000, 4_194_304, (1, 4), ()),
    collapsing("collapse-few", "2,000 distinct stacks", "≥ 5×", 2_000),
    collapsing("collapse-many", "all stacks distinct", "≥ 3×", 0),
    Job(
        "folded-svg",
        "folded stacks → SVG",
        "nothing",
        commands.folded(60_000),
        commands.ours("flamegraph"),
        [Peer("inferno-flamegraph", "inferno-flamegraph", "≥ 4×", commands.with_path("inferno-flamegraph"))],
        outputs.same_pictures,
        comparable=600e6,
    ),
    Job(
        "perf-svg",
        "perf.data → SVG, tsc under node",
        "recordings/tsc",
        commands.named("tsc"),
        commands.ours("flamegraph", "--no-inline"),
        [
            Peer(
                "perf script --no-inline, inferno",
                "inferno-flamegraph",
                "≥ 25×; 1 GB ≥ 60×",
                commands.perf_script("perf", "--no-inline"),
                BOTH,
                (1, 10),
            ),
            Peer(
                "perf script --no-inline, inferno -n 2",
                "inferno-flamegraph",
                "≥ 25×; 1 GB ≥ 60×",
                lambda given, _: commands.perf_script("perf", "--no-inline")(given, 2),
                sizes=(80,),
                slow=(80,),
            ),
        ],
        outputs.same_stacks(commands.perf_collapse("perf", "--no-inline"), "--no-inline"),
        (1, 10, 80),
    ),
    *(native(name, goal) for name, goal in (("rust", "≥ 100×"), ("cpp", "≥ 50×"))),
    *(dwarf(name) for name in ("cpp", "node", "java", "php", "erlang")),
    Job(
        "firefox",
        "export to Firefox Profiler, tsc under node",
        "recordings/tsc",
        commands.recorded("tsc"),
        commands.FIREFOX,
        [Peer("samply import", "samply", "≥ 20×", commands.samply)],
        outputs.same_samples,
        (1, 10, 80),
    ),
    Job(
        "script",
        "script as a filter, nothing to name",
        "nothing",
        commands.text(30_000, 2_000),
        commands.script,
        [Peer("cat", "cat", "≥ 0.83×", commands.with_path("cat")), script_beside_inferno("≥ 12×")],
        outputs.same_bytes(commands.script, lambda given: given.path),
        comparable=600e6,
    ),
    Job(
        "script-named",
        "script as a filter, half the frames to name",
        "nothing",
        commands.unnamed(30_000, 2_000),
        commands.script_named,
        [script_beside_inferno("≥ 12×")],
        outputs.same_bytes(commands.script_named, lambda given: os.path.join(os.path.dirname(given.path), "named.txt")),
        comparable=600e6,
    ),
    Job(
        "callgrind",
        "callgrind",
        "nothing",
        commands.callgrind(16_575),
        commands.ours("callgrind"),
        [
            Peer("wc -l", "wc", "≥ 0.2×", commands.with_path("wc", "-l")),
            Peer(
                "callgrind_annotate, which only reads it",
                "callgrind_annotate",
                "≥ 100×",
                commands.with_path("callgrind_annotate"),
                sizes=(1,),
            ),
        ],
        outputs.same_costs,
        (1, 10, 80),
        200e6,
    ),
    Job(
        "trace",
        "stats of trace events",
        "nothing",
        commands.trace(200_000),
        commands.ours("stats", result=False),
        [Peer("Perfetto's trace processor, loading it", "trace_processor_shell", "≥ 25×", outputs.PERFETTO)],
        outputs.same_spans,
        comparable=600e6,
    ),
    measureme(
        "measureme",
        "rustc",
        "recordings/measureme: profile.mm_profdata",
        commands.profiled("measureme"),
    ),
    measureme(
        "measureme-calls",
        "calls as Miri writes them",
        "nothing",
        commands.calls(16_500_000),
    ),
]
