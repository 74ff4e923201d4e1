#!/usr/bin/env python3
"""Whole programs side by side: each job of jitgraft against the programs that are used for it today.

    python3 benches/peers DIR [--program target/dist/jitgraft] [--runs 5] [--smallest 1] [--largest 10]
        [--slow] [--write] [JOB...]

installs nothing and takes the peers that it finds (perf, perf7 for a newer one, inferno-*, samply, stack_collapse,
callgrind_annotate, trace_processor_shell, cp, cat, wc); one that is missing is named. Inputs are made in DIR when they are
absent; recordings of programs, which no script can make up, are taken from DIR/recordings/NAME/ (perf.data, and its dump
or map): what `--list` says. `--make` makes the inputs and measures nothing.

A job has sizes, as many times its first one, from `--smallest` to `--largest`; jitgraft takes each with 1 and 2 threads, and a peer that
has threads, too. Runs are interleaved, the first of each is not counted, and no time counts before the outputs have been
compared: folded stacks line by line, named frames one by one as `perf script` prints them, sums where an output has a form
of its own. Seconds are the median of the runs, with the fastest and the slowest; megabytes the peak of anonymous memory of
all processes together. What takes longer than 20 s counts once; where a peer is known to take minutes, only with `--slow`.
The ratio is that of the faster of ours to the fastest of the peer's.

`--write` puts the table into docs/performance.md."""

import argparse
import os
import re
import shutil
import subprocess
import sys

import inputs
import measure
from jobs import JOBS

HOUSE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
THREADS = (1, 2)
TABLE = "docs/performance.md"
MARKS = ("<!-- benches/peers: begin -->\n", "<!-- benches/peers: end -->\n")
HEAD = """| job | size | jitgraft, 1 thread | jitgraft, 2 threads | peer | ratio | goal | outputs |
|---|---|---|---|---|---|---|---|
"""


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


def rows_of(job, place, options):
    """One row of the table for each size and peer."""
    for times in job.sizes:
        if not options.smallest <= times <= options.largest:
            continue
        try:
            given = job.make(place, times)
        except (inputs.Missing, subprocess.CalledProcessError, OSError) as missing:
            yield row(job.name, f"×{times}", "–", "–", "–", "–", "–", f"not measured: {missing}")
            continue
        if not options.make:
            yield from rows_of_size(job, given, times, options)


def rows_of_size(job, given, times, options):
    sides = {("jitgraft", threads): job.ours(options.program, given, threads) for threads in THREADS}
    absent = {}
    for at, peer in enumerate(job.peers):
        if peer.sizes and times not in peer.sizes:
            absent[at] = None
        elif shutil.which(peer.tool) is None:
            absent[at] = f"{peer.tool} is not here"
        elif times in peer.slow and not options.slow:
            absent[at] = "takes minutes"
        else:
            sides |= {(at, threads): peer.command(given, threads) for threads in peer.threads}
    try:
        equal = "as at ×1" if given.size > job.comparable else job.compare(options.program, given)
    except (subprocess.CalledProcessError, OSError, ValueError) as why:
        equal = f"not compared: {why}"
    results = measure.interleaved(sides, options.runs, given)
    given.leave()
    mine = [results["jitgraft", threads] for threads in THREADS]
    ours = [result.failed or result for result in mine]
    size = f"{given.size / 1e6:.1f} MB"
    for at, peer in enumerate(job.peers):
        if at in absent:
            if absent[at]:
                yield row(job.name, size, *ours, f"{peer.name}: {absent[at]}", "–", peer.goal, equal)
            continue
        its = {threads: results[at, threads] for threads in peer.threads}
        ended = [threads for threads in peer.threads if not its[threads].failed]
        if not ended or any(result.failed for result in mine):
            why = its[peer.threads[0]].failed or str(its[peer.threads[0]])
            yield row(job.name, size, *ours, f"{peer.name}: {why}", "–", peer.goal, equal)
            continue
        best = min(ended, key=lambda threads: its[threads].wall())
        name = peer.name if len(peer.threads) == 1 else f"{peer.name}, -n {best}"
        ratio = measure.ratio(min(mine, key=measure.Result.wall), its[best])
        yield row(job.name, size, *ours, f"{name}: {its[best]}", ratio, peer.goal, equal)


def write(table):
    path = os.path.join(HOUSE, TABLE)
    with open(path) as file:
        text = file.read()
    begin, end = MARKS
    if begin not in text or end not in text:
        sys.exit(f"{TABLE}: no place for the table")
    text = re.sub(re.escape(begin) + ".*" + re.escape(end), lambda _: begin + table + end, text, flags=re.S)
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("jobs", nargs="*", metavar="JOB")
    parser.add_argument("--program", default=os.path.join(HOUSE, "target/dist/jitgraft"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--smallest", type=int, default=1)
    parser.add_argument("--largest", type=int, default=10)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_intermixed_args()
    known = {job.id: job for job in JOBS}
    if options.list:
        lines = (f"{job.id:18} {job.name}, ×{', ×'.join(map(str, job.sizes))}\n{'':18} needs {job.needs}\n" for job in JOBS)
        return print("".join(lines), end="")
    if unknown := [name for name in options.jobs if name not in known]:
        sys.exit(f"no such job: {', '.join(unknown)}; there are {', '.join(known)}")
    options.program = os.path.abspath(options.program)
    if not os.access(options.program, os.X_OK):
        sys.exit(f"{options.program}: cannot be run; cargo build --profile dist --features tables makes it")
    place = inputs.Place(os.path.abspath(options.dir), HOUSE, options.program)
    table = HEAD
    print(HEAD, end="", flush=True)
    for job in JOBS:
        if not options.jobs or job.id in options.jobs:
            for line in rows_of(job, place, options):
                print(line, end="", flush=True)
                table += line
    if options.write:
        write(measure.machine() + "\n\n" + table)


main()
