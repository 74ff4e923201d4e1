#!/usr/bin/env python3
"""Counts the lines of src/ by room: production code, inline tests, and production without blank lines and comments.

    tests/tools/lines.py [DIR]
"""
import os
import re
import sys


def split(name, text):
    """The production lines and the test lines of a file."""
    lines = text.split("\n")[:-1]
    if name.endswith("/tests.rs") or "/tests/" in name:
        return [], lines
    for at, line in enumerate(lines):
        if line == "#[cfg(test)]" and re.match(r"mod \w+ \{", "".join(lines[at + 1:at + 2])):
            return lines[:at], lines[at:]
    return lines, []


def main():
    root = os.path.join(sys.argv[1] if len(sys.argv) > 1 else ".", "src")
    rooms = {}
    for folder, _, files in os.walk(root):
        for file in files:
            if not file.endswith(".rs"):
                continue
            path = os.path.join(folder, file)
            room = os.path.relpath(path, root).split(os.sep)[0].removesuffix(".rs")
            with open(path) as text:
                production, tests = split(path, text.read())
            code = sum(1 for line in production if line.strip() and not line.lstrip().startswith("//"))
            counts = rooms.setdefault(room, [0, 0, 0, 0])
            for at, count in enumerate([1, len(production), code, len(tests)]):
                counts[at] += count
    total = [sum(counts[at] for counts in rooms.values()) for at in range(4)]
    print(f"{'room':12} {'files':>6} {'lines':>8} {'share':>6} {'code':>8} {'tests':>8}")
    for room, counts in sorted(rooms.items(), key=lambda item: -item[1][1]) + [("all", total)]:
        files, lines, code, tests = counts
        print(f"{room:12} {files:6} {lines:8} {lines / total[1]:6.1%} {code:8} {tests:8}")


main()
