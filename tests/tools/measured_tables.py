#!/usr/bin/env python3
"""Compares tables of callgrind_annotate and of measureme's tools with those of jitgraft.

    measured_tables.py JITGRAFT callgrind FILE…
    measured_tables.py JITGRAFT measureme DIRECTORY FILE…

callgrind   Files of callgrind, plain or packed with zstd. Compared for each event: the cost of all functions of a name (`self`;
            callgrind_annotate lists inlined code apart, by its file), with their callees (`inclusive`), and for the FUNCTIONS functions with the largest inclusive costs their callers and callees
            with costs and numbers of calls (`tree`). Names of JIT code are left out, since callgrind_annotate has none: files
            are copied to an empty directory. Needs valgrind.
cachegrind  Like callgrind, but only `self`, beside cg_annotate.
measureme   Profiles of measureme. DIRECTORY has measureme's programs stack_collapse, summarize and crox. Compared: stacks with
            their times, beside `collapse`; the times of each label, beside `stats`; and spans, beside `export --to chrome`.

A row is a name, or both sides of a tree, or a stack, or a label. Prints per file and table: rows, equal ones, and the reason of each
difference; those without a known reason go to standard error, and the exit status is 1 then. These reasons are known:

    inlined calls  callgrind_annotate has the calls of inlined code in a row of its own, beside that of the function
    gaps           stack_collapse counts the time of a thread in which no span is open
    no time        stack_collapse writes stacks of which the time is 0, ours are left out
    whole µs       crox writes times in whole microseconds, and leaves out instants and integers
    overlap        stack_collapse subtracts the time of children that last longer than their parent, with a wrong result
"""
import collections
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

FUNCTIONS = 25
JITGRAFT = sys.argv[1]
failed = False


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, errors="replace", **options)


def unpacked(path, work):
    copy = os.path.join(work, os.path.basename(path).removesuffix(".zst"))
    if path.endswith(".zst"):
        with open(copy, "wb") as out:
            subprocess.run(["zstd", "-dcq", path], stdout=out, check=True)
    else:
        shutil.copy(path, copy)
    return copy


def say(path, table, ours, theirs, reasons=()):
    """Compares two tables (key → value) and prints a line. `reasons`: pairs of a word and a test of key and both values."""
    global failed
    counts = collections.Counter()
    for key in sorted(set(ours) | set(theirs), key=str):
        one, other = ours.get(key), theirs.get(key)
        if one == other:
            counts["equal"] += 1
            continue
        reason = next((word for word, test in reasons if test(key, one, other)), None)
        counts[reason or "DIFFERENT"] += 1
        if reason is None:
            failed = True
            print(f"{path} {table}: {key}: theirs {other}, ours {one}", file=sys.stderr)
    print(os.path.basename(path), table, "rows", len(set(ours) | set(theirs)), dict(counts), sep="\t", flush=True)


# ---------------------------------------------------------------------------------------------------- callgrind


def number(text):
    return int(text.replace(",", "")) if text != "." else 0


def function_key(name, file, module):
    return name, os.path.basename(file.replace("???", "")), os.path.basename(module)


def split_name(text):
    """`file:function [object]`; a file may have colons, as in `php:internal`, and so may functions."""
    match = re.fullmatch(r"(.*?)( \[([^\[\]]*)\])?", text, re.S)
    place, module = match[1], match[3] or ""
    # The function is what follows the first colon after the file's last directory.
    file, colon, function = place.partition(":")
    return function_key(function, file, module)


def annotate(path, tool, *words):
    return run(tool, "--threshold=100" if tool == "callgrind_annotate" else "--threshold=0", "--auto=no", "--show-percs=no", *words, path).stdout


def annotated_rows(text):
    """Event names, and per function its costs."""
    events, rows = None, collections.defaultdict(lambda: [])
    for line in text.splitlines():
        if match := re.fullmatch(r"(?:\S+ +)+ *file:function", line):
            events = line.split()[:-1]
        elif events:
            match = re.match(r" *((?:(?:-?[\d,]+|\.) +){%d})(.*)$" % len(events), line)
            if match and not match[2].startswith("PROGRAM TOTALS"):
                values = [number(word) for word in match[1].split()]
                key = split_name(match[2].strip())
                old = rows[key]
                rows[key] = [a + b for a, b in zip(old, values)] if old else values
    return events or [], rows


def our_rows(path, column):
    rows = collections.defaultdict(collections.Counter)
    text = run(JITGRAFT, "report", "-q", "--no-demangle", "--format", "csv", "--limit", "0", path).stdout
    events = []
    for row in csv.DictReader(text.splitlines()):
        event = row.get("event", "")
        if event not in events:
            events.append(event)
        rows[event][our_key(row)] += int(row[column])
    return events, rows


def our_key(row):
    name = re.sub(r"^'(?=[-+=@])", "", row["symbol"])
    return function_key(name, row["source"], row["module"])


def parts(path, copy):
    """callgrind_annotate can't read the further parts of a file (--combine-dumps), and says so. The sum of all lines of costs is
    compared instead."""
    if "malformed" not in run("callgrind_annotate", copy).stderr:
        return False
    sums, positions, after_call = collections.Counter(), 1, False
    for line in open(copy, errors="replace"):
        if line.startswith("positions:"):
            positions = len(line.split()) - 1
        elif re.match(r"[\d+*-]", line):
            if not after_call:
                sums.update({at: int(word) for at, word in enumerate(line.split()[positions:])})
            after_call = False
        elif line.startswith("calls="):
            after_call = True
    events, ours = our_rows(copy, "self")
    for at, event in enumerate(events):
        say(path, f"parts {event or 'self'}", {"total": sum(ours[event].values())}, {"total": sums[at]})
    return True


def callgrind(path, tool="callgrind_annotate"):
    with tempfile.TemporaryDirectory() as work:
        copy = unpacked(path, work)
        if tool == "callgrind_annotate" and parts(path, copy):
            return
        for table, column, words in [("self", "self", []), ("inclusive", "total", ["--inclusive=yes"])]:
            if tool == "cg_annotate" and words:
                continue
            events, theirs = annotated_rows(annotate(copy, tool, *words))
            our_events, ours = our_rows(copy, column)
            for at, event in enumerate(events):
                found = ours[event if event in ours else ""]
                by_name, ours_by_name, all_rows = collections.Counter(), collections.Counter(), collections.Counter()
                with_module = {name for name, _, module in theirs if module}
                for (name, _, module), values in theirs.items():
                    all_rows[merged(name)] += values[at]
                    # With callees, the row of a function contains the code that was inlined into it.
                    if table == "self" or module or name not in with_module:
                        by_name[merged(name)] += values[at]
                for (name, _, _), value in found.items():
                    ours_by_name[merged(name)] += value
                nonzero = lambda rows: {key: value for key, value in rows.items() if value}
                is_inlined = lambda key, one, other: table == "inclusive" and (other or 0) <= (one or 0) <= all_rows[key]
                say(path, f"{table} {event}", nonzero(ours_by_name), nonzero(by_name), [("inlined calls", is_inlined)])
        if tool == "callgrind_annotate":
            tree(path, copy)


def merged(name):
    """Code without a name has its address in callgrind_annotate, and its module or nothing here."""
    return "unnamed" if re.fullmatch(r"0x[0-9a-f]+('\d+)?|\[.*\]|\?\?\?", name) else name


def tree(path, copy):
    text = annotate(copy, "callgrind_annotate", "--tree=both", "--inclusive=yes")
    events = None
    blocks, block = [], []
    for line in text.splitlines():
        if re.fullmatch(r"(?:\S+ +)+ *file:function", line):
            events = line.split()[:-1]
        elif events and not line.strip():
            blocks, block = blocks + [block], []
        elif events:
            block.append(line)
    tables, order, seen = {}, [], collections.Counter()
    for block in blocks + [block]:
        found = {"<": collections.Counter(), ">": collections.Counter()}
        subject = None
        for line in block:
            match = re.match(r" *((?:(?:-?[\d,]+|\.) +){%d})([<>*]) +(.*)$" % len(events), line)
            if not match:
                continue
            value, mark, rest = number(match[1].split()[0]), match[2], match[3]
            if mark == "*":
                subject = split_name(rest)
                order.append((value, subject))
                continue
            call = re.fullmatch(r"(.*) \(([\d,]+)x\)( \[.*\])?", rest)
            name = split_name(call[1])[0]
            found[mark][name, "cost"] += value
            found[mark][name, "calls"] += number(call[2])
        if subject:
            seen[subject[0]] += 1
            tables[subject[0]] = found
    ours, theirs = {}, {}
    biggest = [key for _, key in sorted(order, key=lambda entry: -entry[0])]
    # Names that several functions share can't be asked for alone.
    asked = [key[0] for key in biggest if seen[key[0]] == 1 and not key[0].startswith("0x")][:FUNCTIONS]
    for name in asked:
        for mark, word in (("<", "--callers"), (">", "--callees")):
            rows = run(JITGRAFT, "report", "-q", "--no-demangle", "--format", "csv", "--limit", "0", "--percent-limit", "0",
                       "--event", events[0], f"{word}={name}", copy).stdout
            found = collections.Counter()
            for row in csv.DictReader(rows.splitlines()):
                if row["depth"] == "1":
                    key = our_key(row)[0]
                    found[merged(key), "cost"] += int(row["total"])
                    found[merged(key), "calls"] += int(row["calls"])
            expected = collections.Counter()
            for (key, what), value in tables[name][mark].items():
                expected[merged(key), what] += value
            ours[name, mark] = dict(found)
            theirs[name, mark] = dict(expected)
    say(path, f"tree {events[0]}", ours, theirs)


# ---------------------------------------------------------------------------------------------------- measureme


def measureme(path, tools):
    with tempfile.TemporaryDirectory() as work:
        copy = unpacked(path, work)
        stem = copy.removesuffix(".mm_profdata")
        if stem == copy:
            copy = os.rename(copy, copy + ".mm_profdata") or copy + ".mm_profdata"
        tool = lambda name, *words: run(os.path.join(tools, name), *words, cwd=work)
        # Stacks.
        output = tool("stack_collapse", stem)
        folded = os.path.join(work, "out.stacks_folded")
        if output.returncode or not os.path.exists(folded):
            print(os.path.basename(path), "stacks", "not readable there", output.stderr.strip().split("\n")[-1][:120], sep="\t")
        else:
            theirs = collections.Counter()
            for line in open(folded, errors="replace"):
                stack, _, value = line.rstrip("\n").rpartition(" ")
                theirs[without_root(stack)] += int(value)
            ours = collections.Counter()
            for line in run(JITGRAFT, "collapse", "-q", copy).stdout.splitlines():
                stack, _, value = line.rpartition(" ")
                ours[without_root(stack)] += int(value)
            overlaps = any(value >= 1 << 63 for value in theirs.values())
            say(path, "stacks", ours, theirs, [
                ("gaps", lambda key, one, other: one is None and key == ""),
                ("no time", lambda key, one, other: one is None and other == 0),
                ("overlap", lambda key, one, other: overlaps),
            ])
        # Labels.
        output = tool("summarize", "summarize", "--json", stem)
        summary = stem + ".json"
        if output.returncode or not os.path.exists(summary):
            print(os.path.basename(path), "labels", "not readable there", output.stderr.strip().split("\n")[-1][:120], sep="\t")
        else:
            theirs = {}
            for entry in json.load(open(summary))["query_data"]:
                times = [nanos(entry[name]) for name in TIMES]
                theirs[entry["label"]] = times + [entry["number_of_cache_hits"], entry["invocation_count"]]
            ours = {}
            for row in json.loads(run(JITGRAFT, "stats", "-q", "--format", "json", copy).stdout)["summary"]:
                if row["item"] != "TOTAL":
                    ours[row["item"]] = [row[name] for name in ("self", "time", "blocked", "incr_load", "incr_hash", "cache_hits", "count")]
            say(path, "labels", ours, theirs)
        # Spans.
        output = tool("crox", stem)
        events = os.path.join(work, "chrome_profiler.json")
        if output.returncode or not os.path.exists(events):
            print(os.path.basename(path), "spans", "not readable there", output.stderr.strip().split("\n")[-1][:120], sep="\t")
            return
        exported = os.path.join(work, "ours.json")
        run(JITGRAFT, "export", "-q", "--to", "chrome", "-o", exported, copy)
        say(path, "spans", spans(exported), spans(events))


def without_root(stack):
    """stack_collapse calls the process `rustc`, and we call the thread by the program that was recorded. It leaves semicolons in
    names, such as `[u8; 4]`, though they separate frames; ours are colons."""
    return stack.partition(";")[2].replace(";", ":")


def spans(path):
    """How often each span occurs: name, and duration in whole microseconds, as crox writes it."""
    document = json.load(open(path, errors="replace"))
    found = collections.Counter()
    for event in document if isinstance(document, list) else document["traceEvents"]:
        if event["ph"] == "X" and int(event["dur"]) > 0:
            found[event["name"], int(event["dur"])] += 1
    return found


TIMES = ["self_time", "time", "blocked_time", "incremental_load_time", "incremental_hashing_time"]


def nanos(value):
    return value["secs"] * 10**9 + value["nanos"] if isinstance(value, dict) else value


def main():
    kind, rest = sys.argv[2], sys.argv[3:]
    if kind == "measureme":
        for path in rest[1:]:
            measureme(path, rest[0])
    for path in rest if kind in ("callgrind", "cachegrind") else []:
        callgrind(path, "callgrind_annotate" if kind == "callgrind" else "cg_annotate")
    sys.exit(failed)


main()
