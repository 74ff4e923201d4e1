#!/usr/bin/env python3
"""Whole programs side by side: each job of jitgraft against the programs that are used for it today.

    python3 benches/peers DIR [--program target/release/jitgraft] [--runs 5] [--largest 10] [--write] [JOB...]

installs nothing and takes the peers that it finds (perf, perf7, inferno-*, samply, stack_collapse, callgrind_annotate,
cp, cat, wc); one that is missing is named. Inputs are made in DIR when they are absent; recordings of programs, which
no script can make up, are taken from DIR/recordings/NAME/ (perf.data, and its dump or map): what `--list` says.

A job is measured at sizes of 1, 10 and 100 (up to `--largest`), with 1 and 2 threads. Runs are interleaved, the first of
each is not counted, and no time counts before the outputs have been compared: folded stacks line by line, named
frames one by one as `perf script` prints them, sums where an output has a form of its own. Seconds are the median of
the runs, with the fastest and the slowest; megabytes the peak of anonymous memory of all processes together.

`--write` puts the table into docs/performance.md."""

import argparse
import os
import re
import shutil
import sys

import inputs
import measure
from jobs import JOBS

HOUSE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
THREADS = (1, 2)
TABLE = "docs/performance.md"
MARKS = ("<!-- benches/peers: begin -->\n", "<!-- benches/peers: end -->\n")
HEAD = "| job | size | threads | jitgraft | peer | ratio | goal | outputs |\n|---|---|---|---|---|---|---|---|\n"


def rows_of(job, place, options):
    """One row of the table for each size, peer and number of threads."""
    for times in (1, 10, 100):
        if times > options.largest:
            return
        try:
            given = job.make(place, times)
        except inputs.Missing as missing:
            yield row(job.name, f"×{times}", "–", "–", "–", "–", "–", f"not measured: {missing}")
            return
        sides = {("jitgraft", threads): job.ours(options.program, given, threads) for threads in THREADS}
        here = [peer for peer in job.peers if times <= peer.largest and shutil.which(peer.tool)]
        for peer in job.peers:
            if shutil.which(peer.tool) is None:
                yield row(job.name, f"×{times}", "–", "–", peer.name, "–", peer.goal, f"{peer.tool} is not here")
        # One that has no threads runs once a turn, and stands beside ours with one thread and with two.
        threads_of = lambda peer: THREADS if peer.parallel else THREADS[:1]
        sides |= {(peer.name, threads): peer.command(given, threads) for peer in here for threads in threads_of(peer)}
        if not here:
            continue
        equal = job.compare(options.program, given) if job.compare else "–"
        results = measure.interleaved(sides, options.runs, given)
        for peer in here:
            for threads in THREADS:
                mine, its = results["jitgraft", threads], results[peer.name, threads if peer.parallel else 1]
                size = f"{given.size / 1e6:.1f} MB"
                yield row(job.name, size, threads, mine, f"{peer.name}: {its}", measure.ratio(mine, its), peer.goal, equal)


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


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
    parser.add_argument("--program", default=os.path.join(HOUSE, "target/release/jitgraft"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--largest", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_intermixed_args()
    known = {job.id: job for job in JOBS}
    if options.list:
        return print("".join(f"{job.id:18} {job.name}\n{'':18} needs {job.needs}\n" for job in JOBS), end="")
    if unknown := [name for name in options.jobs if name not in known]:
        sys.exit(f"no such job: {', '.join(unknown)}; there are {', '.join(known)}")
    if not os.access(options.program, os.X_OK):
        sys.exit(f"{options.program}: cannot be run; cargo build --release --features tables makes it")
    place = inputs.Place(os.path.abspath(options.dir), HOUSE, os.path.abspath(options.program))
    table = HEAD
    print(HEAD, end="", flush=True)
    for job in JOBS:
        if not options.jobs or job.id in options.jobs:
            for row in rows_of(job, place, options):
                print(row, end="", flush=True)
                table += row
    if options.write:
        write(measure.machine() + "\n\n" + table)


main()
