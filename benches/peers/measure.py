"""Runs of pipelines of programs: their time, and the anonymous memory of all their processes together."""

import os
import statistics
import subprocess
import time

# Seconds: what takes longer than the first counts once, longer than the second is not warmed up, longer than the third is stopped.
SLOW, VERY_SLOW, PATIENCE = 20, 60, 400


class Failed(Exception):
    """A program that did not end well."""


class Result:
    """Several runs of one side."""

    def __init__(self):
        self.walls, self.cpus, self.peak, self.failed = [], [], 0, None

    def wall(self):
        return statistics.median(self.walls)

    def __str__(self):
        count = len(self.walls)
        spread = "one run" if count == 1 else f"{min(self.walls):.2f}–{max(self.walls):.2f}"
        cpu = statistics.median(self.cpus)
        return f"{self.wall():.2f} s ({spread}), {cpu:.2f} s CPU, {self.peak / 1024:.0f} MB"


def ratio(mine, its):
    """The ratio of the other one's time to ours, by the medians."""
    times = its.wall() / max(mine.wall(), 1e-3)
    return f"{times:.1f}×" if times >= 1 else f"{times:.2f}×"


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
    given.forget()
    before, start = os.times(), time.perf_counter()
    processes, stdin, late = [], subprocess.DEVNULL, False
    with open(given.errors, "wb") as errors:
        for at, stage in enumerate(stages):
            last = at + 1 == len(stages)
            out = open(given.out, "wb") if last else subprocess.PIPE
            # Some write beside where they are started.
            process = subprocess.Popen(
                stage, stdin=stdin, stdout=out, stderr=errors, env=given.environment, cwd=given.directory
            )
            (out.close() if last else None, stdin.close() if stdin != subprocess.DEVNULL else None)
            stdin = process.stdout
            processes.append(process)
        peak = 0
        while any([process.poll() is None for process in processes]):
            peak = max(peak, anonymous(process.pid for process in processes))
            time.sleep(0.002)
            if not late and time.perf_counter() - start > PATIENCE:
                late = True
                for process in processes:
                    process.kill()
    wall, after = time.perf_counter() - start, os.times()
    if late:
        raise Failed(f"stopped after {PATIENCE} s")
    for stage, process in zip(stages, processes):
        if process.returncode:
            with open(given.errors, errors="replace") as said:
                about = " ".join(said.read()[-300:].split()).replace("|", "/")
            raise Failed(f"{os.path.basename(stage[0])} ended with {process.returncode}: {about}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu, peak


def interleaved(sides, runs, given):
    """A side is a pipeline; all take turns, and the first turn warms up. A long run is not repeated."""
    results = {name: Result() for name in sides}
    for turn in range(runs + 1):
        for name, stages in sides.items():
            result = results[name]
            if result.failed or result.walls and result.walls[0] > SLOW:
                continue
            try:
                wall, cpu, peak = run(stages, given)
            except Failed as why:
                result.failed = str(why)
                continue
            result.peak = max(result.peak, peak)
            if turn or wall > VERY_SLOW:
                result.walls.append(wall)
                result.cpus.append(cpu)
    return results
