#!/usr/bin/env python3
"""Prints the TSV files of places.sh as one table in Markdown: table.py TSV… A cell that was measured twice counts as the last time."""
import sys

SITUATIONS = "normal forked all live killed container dead-container two-containers".split()

cells = {}
for path in sys.argv[1:]:
    for line in open(path):
        runtime, situation, frames, told, perf, _, ours, *_, verdict = line.rstrip("\n").split("\t")
        if situation in SITUATIONS and verdict not in ("no frames", "verdict"):
            offered = "?" if verdict == "offered" else ""
            cells.setdefault(runtime, {})[situation] = f"{frames}: {int(frames) - int(told)} · {perf} · {ours}{offered}"

used = [situation for situation in SITUATIONS if any(situation in row for row in cells.values())]
print("| runtime |", " | ".join(used), "|")
print("|---" * (len(used) + 1) + "|")
for runtime, row in cells.items():
    print("|", runtime, "|", " | ".join(row.get(situation, "") for situation in used), "|")
