"""The agreement of both sides, in words."""

import collections
import gzip
import json
import os
import re
import subprocess

import commands

NAMELESS = (b"[unknown]", b"[truncated]")


def stdout_of(stages, given):
    """The output of a pipeline."""
    data = None
    for stage in stages:
        done = subprocess.run(
            stage, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=given.environment, cwd=given.directory
        )
        data = done.stdout
    return data


def result_of(stages, given):
    """The file that a program writes."""
    subprocess.run(
        stages[0],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=given.environment,
        cwd=given.directory,
        check=True,
    )
    return given.result


def spelled(frame):
    """A name as all spell it: C++ without the type that a template returns, the kind of copy and parameters of Java and C++."""
    if b" " in frame:
        frame = re.sub(rb" ?\[clone [^]]*\]| const$", b"", frame)
        depth, start = 0, 0
        for at, letter in enumerate(frame):
            depth += (letter in b"<({[") - (letter in b">)}]")
            if letter == 32 and depth == 0 and b"operator" not in frame[start:at]:
                start = at + 1
        frame = frame[start:]
    # Java: `Lpackage/Class;method` of the jitdump.
    java = re.fullmatch(rb"L([\w/$.]+)[:;](.+)", frame)
    return b".".join(java.groups()).replace(b"/", b".") if java else frame


def same_folded(ours, its):
    """The share of the weight in lines that both have. Frames without a name, and the mark of a stack that ends
    before its beginning, are spelled in as many ways as there are programs: they are left out."""
    spellings = {}

    def weights(text):
        sums = collections.defaultdict(float)
        for line in text.splitlines():
            stack, weight = line.rsplit(b" ", 1)
            comm, *frames = [frame for frame in stack.split(b";") if frame not in NAMELESS]
            for frame in frames:
                if frame not in spellings:
                    spellings[frame] = spelled(frame)
            # inferno takes numbers at the end of a thread's name for those of processes.
            comm = re.sub(rb"[_ ]?[0-9]+$", b"", comm)
            sums[b";".join([comm, *(spellings[frame] for frame in frames)])] += float(weight)
        return sums

    one, other = weights(ours), weights(its)
    same = sum(min(weight, other.get(stack, 0)) for stack, weight in one.items())
    total = max(sum(one.values()), sum(other.values()))
    return f"{100 * same / total:.2f} % of the weight in equal lines" if total else "nothing to compare"


def same_stacks(its, *options):
    """Ours beside the pipeline's folded stacks."""
    collapse = commands.ours("collapse", *options, result=False)
    return lambda program, given: same_folded(stdout_of(collapse(program, given, 2), given), stdout_of(its(given, 2), given))


def same_native(its, without):
    """perf looks return addresses up as they are, one too far for the calls that were inlined: without those, too."""

    def compare(program, given):
        with_them, alone = same_stacks(its)(program, given), same_stacks(without, "--no-inline")(program, given)
        return f"{with_them}; {alone.split(' of ')[0]} without inlined calls"

    return compare


def same_names(*options):
    """The names of frames in both results as perf script prints them."""

    def printed(stages, given):
        script = ["perf", "script", "--no-inline", *options, "-F", "ip,sym", "-i", result_of(stages, given)]
        # Addresses are those in the image, which are nobody's but its maker's.
        return [line.split(None, 1)[1:] for line in stdout_of([script], given).split(b"\n")]

    def compare(program, given):
        ours = printed(commands.inject(program, given, 2), given)
        its = printed(commands.perf_inject("perf")(given, 2), given)
        if len(ours) != len(its):
            return f"{len(ours):,} lines against {len(its):,}"
        frames = [(one, other) for one, other in zip(ours, its) if other]
        equal = sum(one == other for one, other in frames)
        worse = sum(one == [b"[unknown]"] != other for one, other in frames)
        return f"{equal:,} of {len(frames):,} frames, {worse} named only by perf"

    return compare


def same_pictures(program, given):
    """The number of samples that both pictures state."""

    def total(picture):
        shown = re.search(rb"all \(([0-9,]+) samples", picture) or re.search(rb"([0-9,]+) samples", picture)
        return shown.group(1).decode() if shown else "none"

    ours = total(stdout_of([[program, "flamegraph", given.path]], given))
    its = total(stdout_of([["inferno-flamegraph", given.path]], given))
    return f"{ours} samples" if ours == its else f"{ours} samples against {its}"


def same_bytes(ours, path_of):
    """The output has the content of that file."""

    def compare(program, given):
        command = ours(program, given, 2)
        with open(given.out, "wb") as out:
            subprocess.run(command[0], stdout=out, stderr=subprocess.DEVNULL, check=True)
        same = subprocess.run(["cmp", "-s", path_of(given), given.out]).returncode == 0
        return "the same bytes" if same else "other bytes"

    return compare


def same_costs(program, given):
    """The costs in the input and in the output."""

    def total(path):
        own, called = 0, False
        with open(path, "rb") as file:
            for line in file:
                if line[:1].isdigit() and not called:
                    own += int(line.split()[2])
                called = line.startswith(b"calls=")
        return own

    one, other = total(given.path), total(result_of(commands.ours("callgrind")(program, given, 2), given))
    return f"{one:,} Ir in both" if one == other else f"{one:,} Ir against {other:,}"


PERFETTO = commands.with_path("trace_processor_shell", "-Q", "select count(*) from slice")


def same_spans(program, given):
    ours = stdout_of([[program, "stats", given.path]], given)
    found = re.search(rb"^TOTAL PROGRAM DURATION +([0-9]+)", ours, re.M)
    one = int(found.group(1)) if found else 0
    other = int(stdout_of(PERFETTO(given, 1), given).split()[-1])
    return f"{one:,} spans in both" if one == other else f"{one:,} spans against {other:,}"


def same_calls(program, given):
    """The peer's line of the root by itself is the time between a thread's calls, which is not a call."""
    subprocess.run(commands.stack_collapse(given, 1)[0], cwd=given.directory, stdout=subprocess.DEVNULL, check=True)
    with open(os.path.join(given.directory, "out.stacks_folded"), "rb") as file:
        its = b"".join(line for line in file if not re.match(rb"[^;]* [0-9]+$", line))
    ours = stdout_of(commands.ours("collapse", result=False)(program, given, 2), given)
    return same_folded(ours, its)


def same_samples(program, given):
    """Samples of all threads in both profiles."""

    def count(stages):
        with open(result_of(stages, given), "rb") as file:
            data = file.read()
        profile = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        return sum(len(thread["samples"]["stack"]) for thread in profile["threads"])

    ours, its = count(commands.FIREFOX(program, given, 2)), count(commands.samply(given, 2))
    return f"{ours:,} samples against {its:,}"
