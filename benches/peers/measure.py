"""Runs of pipelines of programs: their time, and the anonymous memory of all their processes together."""

import os
import statistics
import subprocess
import time


class Failed(Exception):
    """A program that did not end well."""


class Result:
    """Several runs of one side."""

    def __init__(self):
        self.walls, self.cpus, self.peak = [], [], 0

    def __str__(self):
        wall = statistics.median(self.walls)
        spread = f"{min(self.walls):.2f}–{max(self.walls):.2f}"
        return f"{wall:.2f} s ({spread}), {statistics.median(self.cpus):.2f} s CPU, {self.peak / 1024:.0f} MB"


def ratio(mine, its):
    """How many times longer the other one takes, by the medians."""
    return f"{statistics.median(its.walls) / max(statistics.median(mine.walls), 1e-3):.1f}×"


def machine():
    """The machine, in words."""
    with open("/proc/cpuinfo") as about:
        models = [line.split(":", 1)[1].strip() for line in about if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{len(models)} processors ({models[0] if models else 'unknown'}), {memory:.0f} GiB of memory, warm cache."


def anonymous(pids):
    """Kilobytes."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as about:
                total += sum(int(line.split()[1]) for line in about if line.startswith("RssAnon"))
        except OSError:
            pass
    return total


def run(stages, given):
    """A pipeline, each stage a list of words: wall seconds, processor seconds, peak in kilobytes."""
    for path in given.outputs:
        if os.path.exists(path):
            os.unlink(path)
    before, start = os.times(), time.perf_counter()
    processes, stdin = [], subprocess.DEVNULL
    with open(given.errors, "wb") as errors:
        for at, stage in enumerate(stages):
            last = at + 1 == len(stages)
            out = open(given.out, "wb") if last else subprocess.PIPE
            process = subprocess.Popen(stage, stdin=stdin, stdout=out, stderr=errors, env=given.environment)
            (out.close() if last else None, stdin.close() if stdin != subprocess.DEVNULL else None)
            stdin = process.stdout
            processes.append(process)
        peak = 0
        while any(process.poll() is None for process in processes):
            peak = max(peak, anonymous(process.pid for process in processes))
            time.sleep(0.002)
    wall, after = time.perf_counter() - start, os.times()
    if processes[-1].returncode:
        with open(given.errors, errors="replace") as said:
            raise Failed(f"{' '.join(stages[-1])}: {said.read()[:500]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu, peak


def interleaved(sides, runs, given):
    """A side is a pipeline; all take turns, and the first turn warms up."""
    results = {name: Result() for name in sides}
    for turn in range(runs + 1):
        for name, stages in sides.items():
            wall, cpu, peak = run(stages, given)
            result = results[name]
            result.peak = max(result.peak, peak)
            if turn:
                result.walls.append(wall)
                result.cpus.append(cpu)
    return results
