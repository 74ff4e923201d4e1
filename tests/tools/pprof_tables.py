#!/usr/bin/env python3
"""Compares tables of `go tool pprof` with those of `jitgraft report`, for each sample type of each file.

    pprof_tables.py JITGRAFT FILE…

    -top        flat and cumulative value of each function, beside `report`
    -peek       callers and callees of the FUNCTIONS functions with the largest cumulative values, beside `report --callers`
                and `--callees`

Files in older formats of gperftools are converted by `go tool pprof -proto` first; other profiles than pprof's by
`jitgraft export`. pprof puts functions with the same name in one row; ours are added up here. The columns: file, sample type,
rows compared, rows that differ, then the same for tables. Differences go to standard error. For a function that calls itself,
pprof counts each edge once per sample, and ours are the callers of its innermost call: these tables are counted apart
(`recursive`), as are tables of functions that share their name with others (`namesakes`) and of code without a name
(`unnamed`), which has one row per module. The type `samples/count` beside another type is our number of samples. Exits with 1 if anything else differs.
Needs go.
"""
import collections
import csv
import os
import re
import subprocess
import sys
import tempfile

FUNCTIONS = 25
UNITS = {"nanoseconds": "ns", "microseconds": "ns", "milliseconds": "ns", "seconds": "ns", "bytes": "B"}


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, errors="replace")


def pprof(path, index, *words):
    # Neither trims small nodes nor hides anything; values are printed as whole numbers of the smallest unit.
    settings = ["-symbolize=none", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-trim=false", "-functions"]
    return run("go", "tool", "pprof", *settings, f"-sample_index={index}", *words, path).stdout


def sample_types(path):
    """The sample types of a file: pairs of name and unit; and its samples: value per type, and names of frames."""
    text = pprof_raw(path)
    head = re.search(r"^Samples:\n(.*)$", text, re.M)[1]
    return [tuple(word.removesuffix("[dflt]").split("/", 1)) for word in head.split()]


def pprof_raw(path):
    return run("go", "tool", "pprof", "-symbolize=none", "-raw", path).stdout


def value(text):
    number = re.match(r"-?[\d.e+]+", text)[0]
    return round(float(number))


def top(path, index, unit):
    rows = {}
    for line in pprof(path, index, "-top", f"-unit={unit}").splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and words[1].endswith("%") and words[2].endswith("%"):
            rows[name_of(words[5])] = (value(words[0]), value(words[3]))
        elif len(words) == 6 and words[1] == "0":  # no percentage if the total is 0
            rows[name_of(words[5])] = (value(words[0]), value(words[3]))
    return rows


def name_of(text):
    name = text.removesuffix(" (inline)").removesuffix(" (partial-inline)").strip()
    return "[unknown]" if name == "<unknown>" else name


def peek(path, index, unit):
    """Callers and callees of each function: name → (callers, callees), each name → value."""
    tables = {}
    for block in re.split(r"^-+\+-+$", pprof(path, index, "-peek", ".", f"-unit={unit}"), flags=re.M):
        callers, callees, subject = {}, {}, None
        for line in block.splitlines():
            left, bar, right = line.partition(" | ")
            if not bar or "flat%" in left:
                continue
            numbers = left.split()
            if len(numbers) >= 4:
                subject = name_of(right)
            elif numbers:
                (callers if subject is None else callees)[name_of(right)] = value(numbers[0])
        if subject is not None:
            tables[subject] = (callers, callees)
    return tables


def report(jitgraft, path, event, *words):
    words = ["-q", "--no-demangle", "--format", "csv", "--limit", "0", *event, *words]
    return list(csv.DictReader(run(jitgraft, "report", *words, path).stdout.splitlines()))


def neighbours(rows, names):
    """Names and totals of the rows just below the root."""
    sums = collections.Counter()
    for row in rows:
        if row["depth"] == "1":
            sums[bare(row["symbol"], names)] += int(row["total"])
    return sums


def bare(symbol, names):
    """A name without the location that is appended to functions of one name, and without the mark of texts that a
    spreadsheet would take for a formula."""
    symbol = re.sub(r"^'(?=[-+=@])", "", symbol)
    symbol = "[unknown]" if symbol == "<unknown>" else symbol
    return symbol if symbol in names else re.sub(r" \([^()]*(\.\w+(:\d+)*|:\d+)\)$", "", symbol)


def compare(jitgraft, path, work):
    failed = False
    original = path
    head = open(path, "rb").read(2)
    if head != b"\x1f\x8b":
        converted = os.path.join(work, "x.pb.gz")
        if run("go", "tool", "pprof", "-symbolize=none", "-proto", f"-output={converted}", path).returncode == 0 and os.path.exists(converted):
            path = converted
        else:
            exported = run(jitgraft, "export", "-q", "--to", "pprof", "-o", converted, path)
            if exported.returncode or not os.path.exists(converted):
                print(f"{original}: not readable: {exported.stderr.strip()[:200]}", file=sys.stderr)
                return False
            path = converted
    events = {}
    for index, (name, unit) in enumerate(sample_types(path)):
        events.setdefault(name, []).append((index, unit))
    for name, places in events.items():
        index, unit = places[0]
        event = ["--event", name]
        others = [other for other in events if other != name]
        has_own_samples = any(other.endswith(":samples") for other in others)
        if (name, unit) == ("samples", "count") and others and not has_own_samples:
            event = ["--event", others[0], "--weight", "samples"]
        if name.endswith(":samples") and unit == "count":
            event = ["--event", name.removesuffix(":samples"), "--weight", "samples"]
        unit = UNITS.get(unit, unit)
        theirs = top(path, index, unit)
        ours, files = {}, collections.Counter()
        for row in report(jitgraft, path, event):
            symbol = bare(row["symbol"], theirs)
            old = ours.get(symbol, (0, 0))
            files[symbol] += 1
            ours[symbol] = (old[0] + int(row["self"]), old[1] + int(row["total"]))
        differ = 0
        for function in sorted(set(theirs) | set(ours)):
            one, other = theirs.get(function, (0, 0)), ours.get(function, (0, 0))
            # The total of functions with one name may count a sample twice where they call each other.
            if one != other and not (files[function] > 1 and one[0] == other[0]):
                differ += 1
                print(f"{original} {name}: {function}: pprof {one}, jitgraft {other}", file=sys.stderr)
        tables = peek(path, index, unit)
        recursive = recursive_names(path)
        counts = collections.Counter()
        largest = sorted(theirs, key=lambda function: -abs(theirs[function][1]))[:FUNCTIONS]
        for function in largest:
            for word, expected in zip(("--callers", "--callees"), tables.get(function, ({}, {}))):
                # pprof leaves out an edge that sums up to 0.
                found = {key: sum for key, sum in neighbours(report(jitgraft, path, event, f"{word}={function}"), theirs).items() if sum}
                expected = {key: sum for key, sum in expected.items() if sum and key != function}
                found.pop(function, None)
                if found == expected:
                    counts["equal"] += 1
                elif function.startswith("["):
                    counts["unnamed"] += 1
                elif function in recursive or recursive & (set(found) | set(expected)):
                    counts["recursive"] += 1
                elif files[function] > 1:
                    counts["namesakes"] += 1
                else:
                    counts["differ"] += 1
                    print(f"{original} {name} {word} {function}: pprof {expected}, jitgraft {dict(found)}", file=sys.stderr)
        failed |= differ > 0 or counts["differ"] > 0
        print(os.path.basename(original), name, "rows", len(theirs), "differ", differ, "tables", sum(counts.values()), dict(counts), sep="\t")
    return failed


def recursive_names(path):
    """Names of functions that occur more than once in some stack, from the text of `pprof -raw`."""
    text = pprof_raw(path)
    names = {}
    section = text.split("\nLocations\n", 1)[1].split("\nMappings", 1)[0]
    current = None
    for line in section.splitlines():
        start = re.match(r"\s*(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(.*)$", line)
        if start:
            current, rest = int(start[1]), start[2]
            names[current] = []
        else:
            rest = line.strip()
        if current is not None and rest:
            names[current].append(re.sub(r"(\[F\] )?(.*?) [^ ]*:\d+(:\d+)? s=\d+.*$", r"\2", rest))
    recursive = set()
    for line in text.split("\nLocations\n", 1)[0].splitlines():
        stack = re.match(r"\s*[-\d ]+: ([\d ]+)$", line)
        if stack:
            counts = collections.Counter(name for number in stack[1].split() for name in names.get(int(number), []))
            recursive |= {name for name, count in counts.items() if count > 1}
    return recursive


def main():
    failed = False
    for path in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as work:
            failed |= compare(sys.argv[1], path, work)
    sys.exit(failed)


main()
