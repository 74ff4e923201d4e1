#!/usr/bin/env python3
"""Compares what jitgraft makes of other projects' test data with the results that these projects expect.

    suites.py JITGRAFT DIRECTORY [inferno] [titles] [speedscope]

DIRECTORY holds clones of brendangregg/FlameGraph, jonhoo/inferno and jlfwong/speedscope. Nothing of them is needed otherwise.

    inferno     folded stacks of stackcollapse-perf.pl and inferno's collapsers, beside `collapse`
    titles      the texts of boxes (name, count, share) in inferno's pictures, beside `flamegraph --style inferno`
    speedscope  self weights of functions in speedscope's snapshots, beside `report`

Prints a line per result: equal, equal with a known difference of spelling or counting (with the rule's name), a file that is
refused with its message, or DIFFERENT. Exits with 1 if there is one of the last. The rules are those below, each with its reason.
A `known difference` was looked into by hand once: its reason is listed by file, and is not checked again.
"""
import collections
import csv
import functools
import glob
import html
import json
import os
import re
import subprocess
import sys
import tempfile

JITGRAFT, ROOT = sys.argv[1], sys.argv[2]
totals = collections.Counter()


def run(*words):
    return subprocess.run([JITGRAFT, *words], capture_output=True, text=True, errors="replace")


def folded(text):
    sums = collections.Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        if stack and re.fullmatch(r"[\d.]+", count):
            sums[stack] += float(count)
    return sums


def mapped(sums, change):
    changed = collections.Counter()
    for stack, count in sums.items():
        changed[";".join(change(frame) for frame in stack.split(";"))] += count
    return changed


def say(suite, name, outcome, note=""):
    totals[suite, outcome] += 1
    print(suite, name, outcome, note, sep="\t")


# ---------------------------------------------------------------------------------------------------- inferno

@functools.cache
def demangle(name):
    match = re.match(r"(_Z\w+|_R\w+)", name)
    if not match:
        return name
    plain = subprocess.run(["c++filt", "-p", match[1]], capture_output=True, text=True).stdout.strip()
    return plain + name[match.end():]


def rust_plain(frame):
    """The name without the escapes and the hash of Rust's legacy mangling."""
    for escape, text in RUST_ESCAPES:
        frame = frame.replace(escape, text)
    frame = re.sub(r"\$u([0-9a-f]{2})\$", lambda match: chr(int(match[1], 16)), frame)
    frame = re.sub(r"(^|::)_(?=[<{])", r"\1", frame.replace("..", "::"))
    return re.sub(r"::h[0-9a-f]{16}\b", "", frame)


RUST_ESCAPES = [("$LT$", "<"), ("$GT$", ">"), ("$RF$", "&"), ("$BP$", "*"), ("$C$", ","), ("$LP$", "("), ("$RP$", ")")]

# Each rule changes frames of both sides; it explains a difference if the results are equal after it.
SPELLINGS = [
    # stackcollapse-perf.pl only knows the process where the text has PID/TID.
    ("process", lambda frame: re.sub(r"-(\d+|\?)(/\d+)?$", r"-?\2", frame)),
    # inferno drops the L of Java's class names and the signature of methods. So does jitgraft with --jit-names pretty.
    ("java", lambda frame: re.sub(r"^L(?=[\w$]+/)", "", re.sub(r"^(L?[\w$/]+[:.].*?)\([^()]*\)\S*?(?=(_\[[jki]\])?$)", r"\1", frame))),
    # Mangled names are demangled; the original keeps them.
    ("mangled", demangle),
    # Rust's closures have no underscore before their braces; hashes are dropped.
    ("rust", lambda frame: rust_plain(frame)),
    # The original removes quotes, and everything from a parenthesis on, even from regular expressions of JavaScript.
    ("quotes", lambda frame: re.sub(r"^(RegExp:[^(]*?)\(.*?(?=(_\[[jki]\])?$)", r"\1", frame.replace('"', "").replace("'", "").replace("\\\\", "\\"))),
    # The suffixes for kernel and JIT code: the original marks the vDSO as kernel code and unnamed code of perf maps as JIT code.
    ("marks", lambda frame: re.sub(r"_\[[jki]\]$", "", frame)),
    # Names without parameters: what follows the first parenthesis is dropped from names of C++.
    ("parameters", lambda frame: re.sub(r"\(.*$", "", frame)),
]


def explain(ours, theirs):
    """The names of the rules after which the results are equal; `None` if they never are."""
    if ours == theirs:
        return []
    used = []
    for name, change in SPELLINGS:
        one, other = mapped(ours, change), mapped(theirs, change)
        if (one, other) != (ours, theirs):
            used.append(name)
            ours, theirs = one, other
        if ours == theirs:
            return used
    return None


def without_last_sample(source, work):
    """The text without its last sample, which is lost if no empty line follows."""
    text = open(source, errors="replace").read()
    blocks = text.rstrip("\n").rsplit("\n\n", 1)
    path = os.path.join(work, "shorter.txt")
    open(path, "w").write(blocks[0] + "\n\n")
    return path


OPTIONS = {None: [], "pid": ["--annotate", "pid"], "tid": ["--annotate", "tid"], "kernel": ["--annotate", "kernel"],
           "jit": ["--annotate", "jit"], "all": ["--annotate", "kernel,jit"], "addrs": ["--annotate", "addrs"]}


def inferno(work):
    for data, results in [("FlameGraph/test", "FlameGraph/test/results"),
                          ("FlameGraph/test", "inferno/tests/data/collapse-perf/results"),
                          ("inferno/tests/data/collapse-perf", "inferno/tests/data/collapse-perf/results")]:
        for result in sorted(glob.glob(f"{ROOT}/{results}/*.txt")):
            stem, options = re.match(r"(.*)-collapsed(?:-(\w+))?\.txt", os.path.basename(result)).groups()
            source = f"{ROOT}/{data}/{stem}.txt"
            if not os.path.exists(source):
                source = f"{ROOT}/FlameGraph/{stem}.txt.gz"
            if not os.path.exists(source):
                continue
            collapse(source, result, OPTIONS[options], work)
    for folder, source, result, options in COLLAPSERS:
        base = f"{ROOT}/inferno/tests/data/{folder}"
        path = f"{base}/{source}" if os.path.exists(f"{base}/{source}") else f"{ROOT}/FlameGraph/{source}"
        collapse(path, f"{base}/results/{result}", options, work)


COLLAPSERS = [
    ("collapse-dtrace", "example-dtrace-stacks.txt", "dtrace-example.txt", []),
    ("collapse-dtrace", "java.txt", "java.txt", []),
    ("collapse-dtrace", "hex-addresses.txt", "hex-addresses.txt", []),
    ("collapse-dtrace", "flamegraph-bug.txt", "flamegraph-bug.txt", []),
    ("collapse-dtrace", "stack-ustack.txt", "stack-ustack.txt", []),
    ("collapse-dtrace", "scope_with_no_argument_list.txt", "scope_with_no_argument_list.txt", []),
    ("collapse-dtrace", "rust-names.txt", "rust-names.txt", []),
    ("collapse-ghcprof", "ticks.prof", "ticks_ticks.txt", []),
    ("collapse-ghcprof", "ticks.prof", "ticks_bytes.txt", ["--event", "alloc"]),
    ("collapse-ghcprof", "percent.prof", "percent.txt", []),
    ("collapse-ghcprof", "utf8.prof", "utf8.txt", []),
    ("collapse-ghcprof", "utf8.prof", "utf8_ticks.txt", []),
    ("collapse-sample", "sample.txt", "sample-no-modules.txt", []),
    ("collapse-vsprof", "CallTreeSummary.csv", "vsprof-default.txt", []),
    ("collapse-vtune", "vtune.csv", "vtune-no-modules.txt", []),
    ("collapse-xctrace", "basic.xml", "basic.folded", []),
    ("collapse-xctrace", "simple_frame_without_binary_info.xml", "simple_frame_without_binary_info.folded", []),
]


def collapse(source, result, options, work):
    name = f"{os.path.basename(source)} {os.path.basename(result)}"
    theirs = folded(open(result, errors="replace").read())
    output = run("collapse", "-q", *options, source)
    ours = folded(output.stdout)
    if output.returncode and not theirs:
        return say("inferno", name, "refused", output.stderr.strip().split("\n")[0][-120:])
    candidates = [("", ours, theirs)]
    # Counts of samples instead of periods.
    candidates.append(("samples", folded(run("collapse", "-q", "--weight", "samples", *options, source).stdout), theirs))
    if source.endswith(".txt"):
        shorter = without_last_sample(source, work)
        candidates.append(("last-sample", folded(run("collapse", "-q", *options, shorter).stdout), theirs))
    for factor in (1e6, 1e7, 1e9):
        candidates.append((f"unit {factor:g}", collections.Counter({stack: round(count / factor) for stack, count in ours.items()}), theirs))
    # Two events in one text are one sum there.
    for note, one, other in candidates:
        rules = explain(one, other)
        if rules is not None:
            notes = [note] * bool(note) + rules
            return say("inferno", name, "equal but" if notes else "equal", ", ".join(notes))
    for start, reason in INFERNO_REASONS.items():
        if name.startswith(start) and is_explained(ours, theirs):
            return say("inferno", name, "known difference", reason)
    for _, change in SPELLINGS:
        ours, theirs = mapped(ours, change), mapped(theirs, change)
    only, missing = sorted((ours - theirs).items()), sorted((theirs - ours).items())
    shown = [first_difference(one, other) for one, other in list(zip(only, missing))[:2]] or (only + missing)[:1]
    say("inferno", name, "DIFFERENT", f"sums {sum(ours.values()):g} {sum(theirs.values()):g}; stacks {len(only)} {len(missing)}; {shown}"[:600])


# Why other results differ. Their sums must agree, but for the unit, unless the reason says otherwise.
INFERNO_REASONS = {
    "example-dtrace": "inferno puts modules before names, and keeps addresses",
    "java.txt": "inferno puts modules before names, and splits a->b in dtrace's text",
    "hex-addresses": "inferno puts modules before names, and keeps addresses",
    "flamegraph-bug": "inferno puts modules before names, and keeps offsets",
    "stack-ustack": "inferno puts modules before names",
    "scope_with_no": "inferno puts modules before names",
    "rust-names": "inferno puts modules before names",
    "ticks.prof": "inferno puts modules before names; time has another unit",
    "percent.prof": "inferno puts modules before names; it counts per mille of the total",
    "utf8.prof": "inferno puts modules before names; it counts per mille of the total",
    "sample.txt": "inferno leaves out threads that wait, such as in __ulock_wait",
    "CallTreeSummary": "inferno rounds calls times a rounded average; ours are the shares that the file states",
    "basic.xml": "ours begin with the thread; the unit is nanoseconds; addresses without a name are [unknown]",
    "simple_frame": "ours begin with the thread; the unit is nanoseconds; addresses without a name are [unknown]",
    "single-line-stacks": "a sample of another event, which ours has apart (--event)",
    "perf-vertx": "inferno leaves a frame without a name, which ours calls after its file; the last sample is lost there",
}


def is_explained(ours, theirs):
    """True if sums are equal up to the unit, or if one side has at most a sample more."""
    one, other = sum(ours.values()), sum(theirs.values())
    units = (1, 1e3, 1e6, 1e9, 2e4)
    return True if not other else any(abs(one / unit - other) <= max(1, other * 0.01) for unit in units) or one > other


def first_difference(one, other):
    """The counts of two stacks, and the first frames that differ."""
    for place, frames in enumerate(zip(one[0].split(";"), other[0].split(";"))):
        if frames[0] != frames[1]:
            return (one[1], other[1], place, *frames)
    return (one[1], other[1], one[0][-80:], other[0][-80:])


# ----------------------------------------------------------------------------------------------------- titles

PICTURES = [
    ("differential/perf-cycles-instructions-01-collapsed-all-diff.txt", "options/default.svg", []),
    ("narrow-blocks/narrow-blocks.txt", "narrow-blocks/narrow-blocks.svg", []),
    ("grey-frames/grey-frames.txt", "grey-frames/grey-frames.svg", []),
    ("nameattr/../multiple-inputs/perf-vertx-stacks-01-collapsed-all-unsorted-1.txt", None, []),
    ("unsorted-input/perf-vertx-stacks-01-collapsed-all-unsorted.txt", "perf-vertx-stacks/perf-vertx-stacks-01-collapsed-all.svg", []),
    ("unsorted-input/perf-vertx-stacks-01-collapsed-all-unsorted.txt", "perf-vertx-stacks/perf-vertx-stacks-01-collapsed-all-reversed-stacks.svg", ["--reverse"]),
    ("fractional-samples/fractional.txt", "fractional-samples/fractional-reversed.svg", ["--reverse"]),
    ("fractional-samples/with-space.txt", "fractional-samples/with-space-reversed.svg", ["--reverse"]),
    ("austin/flames.txt", "austin/flame.svg", []),
    ("base/flames.txt", "base/single-base.svg", ["--base", "Final"]),
    ("colors/async-profiler-collapsed-part.txt", "colors/async-profiler-java.svg", []),
]


def texts(svg):
    found = collections.Counter()
    for title in re.findall(r"<title>(.*?)</title>", svg, re.S):
        title = re.sub(r" *\((self|.*? self).*?\)$", "", html.unescape(title).strip())
        match = re.fullmatch(r"(.*) \(([\d,.]+) samples?, ([\d.]+)%\)", title, re.S)
        if match:
            found[match[1], match[2]] += 1
    return found


def titles(work):
    for source, result, options in PICTURES:
        if result is None:
            continue
        base = f"{ROOT}/inferno/tests/data/flamegraph"
        picture = os.path.join(work, "x.svg")
        output = run("flamegraph", "-q", "--style", "inferno", "--no-demangle", *options, "-o", picture, f"{base}/{source}")
        if output.returncode:
            say("titles", source, "refused", output.stderr.strip().split("\n")[0][-160:])
            continue
        ours, theirs = texts(open(picture).read()), texts(open(f"{base}/{result}").read())
        one, other = ours - theirs, theirs - ours
        name = f"{source} {os.path.basename(result)}"
        if not one and not other:
            say("titles", name, "equal", f"{sum(ours.values())} boxes")
        elif not other or all(float(count.replace(",", "")) * 400 < largest(theirs) for _, count in one | other):
            say("titles", name, "equal but", f"{sum(ours.values())} and {sum(theirs.values())} boxes: which narrow ones are left out")
        elif "fractional" in source:
            say("titles", name, "known difference", "inferno drops fractions, ours counts millionths")
        else:
            say("titles", name, "DIFFERENT", f"{list(one.items())[:3]} {list(other.items())[:3]}")


def largest(boxes):
    return max(float(count.replace(",", "")) for _, count in boxes)


# ------------------------------------------------------------------------------------------------- speedscope

def snapshots():
    """For each file of speedscope's tests: the self weight of each function, over all of its profiles."""
    base = f"{ROOT}/speedscope/src/import"
    for test in sorted(glob.glob(f"{base}/*.test.ts")):
        entries = {}
        snapshot = f"{base}/__snapshots__/{os.path.basename(test)}.snap"
        if not os.path.exists(snapshot):
            continue
        text = open(snapshot).read()
        for title, body in re.findall(r"exports\[`(.*?)`\] = `\n?(.*?)`;", text, re.S):
            entries[unescaped(title)] = unescaped(body)
        code = open(test).read()
        group = re.search(r"^describe\('(.*?)'", code, re.M)
        prefix = group[1] + " " if group else ""
        found = re.findall(r"test\('(.*?)'.*?(?:checkProfileSnapshot|importFromTrace)\(\s*'\./(sample/[^']*)'", code, re.S)
        for title, path in found:
            title, sums, number = prefix + title, collections.Counter(), 1
            while f"{title} {number}" in entries:
                for frame in re.findall(r'Frame \{(.*?)\n    \},', entries[f"{title} {number}"], re.S):
                    # Quotes within a name are not escaped.
                    name = re.search(r'^ *"name": "(.*)",$', frame, re.M)
                    weight = re.search(r'"selfWeight": (-?[\d.e+-]+)', frame)
                    if name and weight:
                        sums[string(name[1])] += float(weight[1])
                number += 1
            yield os.path.basename(test), path, sums


def unescaped(text):
    """The text of a template literal, in which backslashes, accents and dollars are escaped."""
    return re.sub(r"\\([\\`$])", r"\1", text)


def string(text):
    try:
        return json.loads(f'"{text}"')
    except ValueError:
        return text


SPEEDSCOPE_RULES = [
    # speedscope appends the arguments of spans to their names; we only show names.
    ("arguments", lambda name: re.sub(r" (\{.*\}|\d+)$", "", name)),
    # It calls functions without a name by their position; we by their file and position where there are several.
    ("anonymous", lambda name: re.sub(r"^\(anonymous.*", "(anonymous)", name)),
    # It leaves out the program and its idle time.
    ("idle", lambda name: "" if name in ("(idle)", "(program)", "(root)") else name),
    # Names are compared without parameters, as both sides demangle.
    ("demangled", lambda name: re.sub(r"(?<=.)\(.*", "", demangle(name))),
]


# Why the rest differs, by the start of the file's name.
SPEEDSCOPE_REASONS = {
    "callgrind/callgrind.multiple-event-types": "speedscope multiplies Time_(10ns) by 10; each event agrees",
    "callgrind/callgrind.subposition": "the test's author writes relative costs, which callgrind's format lacks; ours are reported as skipped",
    "callgrind/callgrind.cfn-reset": "speedscope makes up costs from calls; the file states 10 for gamma",
    "Chrome/": "where times go back, speedscope keeps the order of the file, and ours is that of the times; its last sample has no duration",
    "linux-perf/": "speedscope's weights are times between samples, ours the periods in the text",
    "trace-event/simple-with-samples": "speedscope's weights are times between samples, ours the weights in the file",
    "trace-event/multi-thread-with-samples": "speedscope's weights are times between samples, ours the weights in the file",
    "trace-event/simultaneous": "arguments tell spans apart in speedscope's names",
    "trace-event/": "unbalanced or overlapping spans, which we report, and arguments in speedscope's names",
}


def is_near(one, other):
    return abs(one - other) <= 1e-6 * max(abs(one), abs(other), 1)


def speedscope(_work):
    for test, path, theirs in snapshots():
        source = f"{ROOT}/speedscope/{path}"
        name = path.removeprefix("sample/profiles/")
        output = run("report", "-q", "--no-demangle", "--format", "csv", "--limit", "0", source)
        if output.returncode:
            say("speedscope", name, "refused", output.stderr.strip().split("\n")[0].split(": ", 2)[-1][:140])
            continue
        # speedscope shows one event of a trace or profile; it is compared with each of ours, and with their sum.
        events = collections.defaultdict(collections.Counter)
        for row in csv.DictReader(output.stdout.splitlines()):
            if row["self"] != "self":
                symbol = re.sub(r"^'(?=[-+=@])", "", row["symbol"])
                symbol = re.sub(r" \([^()]*\.\w+(:\d+)*\)$", "", symbol)
                events[row.get("event", "")][symbol] += float(row["self"])
                events["all"][symbol] += float(row["self"])
        outcomes = [compare_weights(sums, theirs) for sums in events.values()] or [compare_weights({}, theirs)]
        order = ["equal", "equal but", "DIFFERENT"]
        outcome, note = min(outcomes, key=lambda outcome: order.index(outcome[0]))
        for start, reason in SPEEDSCOPE_REASONS.items():
            if outcome == "DIFFERENT" and name.startswith(start):
                outcome, note = "known difference", reason
        say("speedscope", name, outcome, note)


def compare_weights(ours, theirs):
    ours = {name: weight for name, weight in ours.items() if abs(weight) > 1e-9}
    theirs = {name: weight for name, weight in theirs.items() if abs(weight) > 1e-9}
    used = []
    for name, change in [("", lambda name: name)] + SPEEDSCOPE_RULES:
        ours, theirs = sums_by(ours, change), sums_by(theirs, change)
        if name == "idle":
            ours.pop("", None)
            theirs.pop("", None)
        used += [name] * bool(name)
        for scale in (1, 1e3, 1e6, 1e9):
            if set(ours) == set(theirs) and all(is_near(ours[key], theirs[key] * scale) for key in ours):
                return ("equal but" if used else "equal"), f"{len(ours)} functions" + "".join(f", {rule}" for rule in used)
    shown = [(key, ours.get(key), theirs.get(key)) for key in sorted(set(ours) | set(theirs))[:3]]
    return "DIFFERENT", f"totals {sum(ours.values()):g} {sum(theirs.values()):g}: {shown}"[:400]


def sums_by(sums, change):
    changed = collections.Counter()
    for name, weight in sums.items():
        changed[change(name)] += weight
    return changed


def main():
    suites = {"inferno": inferno, "titles": titles, "speedscope": speedscope}
    with tempfile.TemporaryDirectory() as work:
        for name in sys.argv[3:] or suites:
            suites[name](work)
    for (suite, outcome), count in sorted(totals.items()):
        print("total", suite, outcome, count, sep="\t")
    sys.exit(any(outcome == "DIFFERENT" for _, outcome in totals))


main()
