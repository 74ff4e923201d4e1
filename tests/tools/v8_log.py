#!/usr/bin/env python3
"""Holds every V8 frame of a recording against its log: names and chains of inlined calls, by a reader of the log that
shares nothing with jitgraft.

usage: v8_log.py DIRECTORY JITGRAFT [OUTPUT OF --trace-turbo-inlining]

The directory has perf.data and one isolate-*-v8.log. Which of several pieces of code was at an address is told by time:
the log's clock is tied to the recording's by the addresses that only ever had one piece of code, as none of it runs
before it is made."""
import bisect
import collections
import functools
import glob
import os
import re
import subprocess
import sys

WORDS = (
    "code-creation code-source-info code-move code-delete code-deopt code-disable-optimization sfi-move script-source "
    "script-details script tick new delete shared-library-end shared-library profiler v8-version v8-platform "
    "heap-capacity heap-available feedback-vector current-time function first-execution api timer-event"
).split()
RECORD = re.compile("^(?=(?:%s)(?:,|$))" % "|".join(WORDS), re.M)
FUNCTION = re.compile(r"(?s)(.*),(0x[0-9a-f]+),((?:o?[~^+*]'?)?)$")
PLACE = re.compile(r"(?s)^(.*?)( (?:file:|node:|/).*)$")
OF_FUNCTIONS = ("JS", "Eval", "Script", "LazyCompile", "Function")
TAGS = re.compile(r"^(?:JS|Eval|Script|LazyCompile|Function|Builtin|BytecodeHandler|Handler|RegExp|Stub|Wasm):")
ALWAYS = 1 << 62
KERNEL = 1 << 63


def unescaped(text):
    def letter(match):
        return {"n": "\n", "\\": "\\"}.get(match[1]) or chr(int(match[1][1:], 16))

    units = re.sub(r"\\(x..|u....|n|\\)", letter, text)
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@functools.lru_cache(None)
def spelled(name):
    match = PLACE.match(name)
    return (match[1] + unescaped(match[2]) if match else unescaped(name)).replace("\n", " ")


class Code:
    def __init__(self, addr, size, made, name, calls=None):
        self.addr, self.size, self.made, self.name, self.calls, self.gone = addr, size, made, name, calls, ALWAYS

    def chain(self, addr):
        """What was inlined at an address, innermost first."""
        if not self.calls:
            return ()
        offsets, inside, inlined, functions = self.calls
        at = bisect.bisect_right(offsets, addr - self.addr) - 1
        chain, call = [], inside[at] if at >= 0 else ""
        while call != "":
            if int(call) >= len(inlined):
                return ()
            function, call = inlined[int(call)]
            chain.append(spelled(functions[int(function)]) if function else "(unknown)")
        return tuple(chain)


def read(path):
    data = open(path, "rb").read().decode("utf-8", "surrogateescape")
    codes, at, names, now, builtins, last = [], {}, {}, 0, None, None
    for record in RECORD.split(data):
        word, _, rest = record.rstrip("\n").partition(",")
        if word == "code-creation":
            tag, kind, micros, addr, size, tail = rest.split(",", 5)
            kind, now, last = int(kind), int(micros), None
            builtins = kind if tag == "Builtin" else builtins
            match = FUNCTION.match(tail) if tag in OF_FUNCTIONS else None
            name, function, tier = match.groups() if match else (tail, None, "")
            if function:
                names[function] = name
            whole = f"{tag}:{tier}{spelled(name)}" if function else f"{tag}:{unescaped(name)}"
            last = Code(int(addr, 16), int(size), now, whole.replace("\n", " "))
            is_bytecode = tier.startswith("~") and kind != builtins
            if kind >= 0 and last.size and not is_bytecode:
                codes.append(last)
                at[last.addr] = last
        elif word == "code-source-info" and last:
            fields = rest.split(",")
            if int(fields[0], 16) == last.addr:
                positions = re.findall(r"C(\d+)O-?\d+(?:I(\d+))?", fields[4])
                # A function without a number is one that V8 does not know itself.
                inlined = re.findall(r"F(\d*)O-?\d+(?:I(\d+))?", fields[5])
                functions = [names.get("0x" + function, "(unknown)") for function in fields[6].split("S0x")[1:]]
                last.calls = ([int(code) for code, _ in positions], [call for _, call in positions], inlined, functions)
        elif word == "code-move":
            source, target = (int(addr, 16) for addr in rest.split(",")[:2])
            if code := at.pop(source, None):
                at[target] = Code(target, code.size, now, code.name, code.calls)
                codes.append(at[target])
        elif word == "code-delete":
            if code := at.pop(int(rest.split(",")[0], 16), None):
                code.gone = now
        elif word == "sfi-move":
            source, target = rest.split(",")[:2]
            if source in names:
                names[target] = names.pop(source)
        elif word == "tick":
            now = max(now, int(rest.split(",")[1]))
    return codes


def frames(jitgraft, recording):
    """Times in microseconds, addresses to look up, names, what was inlined there: each with how often it was seen."""
    command = [jitgraft, "script", "-F", "time,ip,sym", "-i", recording]
    text = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", errors="surrogateescape")
    seen, time, interrupted, inlined = collections.Counter(), 0, True, []
    for line in text.stdout:
        line = line.rstrip("\n")
        if not line.startswith("\t"):
            if match := re.search(r"(\d+)\.(\d{6,9}):", line):
                time = int(match[1]) * 1000000 + int(match[2][:6])
            interrupted, inlined = True, []
            continue
        addr, _, name = line.strip().partition(" ")
        if name.endswith(" (inlined)"):
            inlined.append(name.removesuffix(" (inlined)"))
            continue
        addr = int(addr, 16)
        seen[time, addr if interrupted else addr - 1, name, tuple(inlined)] += 1
        # The interrupted instruction has an address of its own, not a return address.
        interrupted, inlined = addr >= KERNEL, []
    if text.wait():
        sys.exit("jitgraft script failed")
    return seen


def main(directory, jitgraft, trace=None):
    (log,) = glob.glob(os.path.join(directory, "isolate-*-v8.log"))
    pages = collections.defaultdict(list)
    for code in read(log):
        # Sizes beyond reason are of no code that runs.
        for page in range(code.addr >> 12, (code.addr + min(code.size, 1 << 24) - 1 >> 12) + 1):
            pages[page].append(code)

    def at(addr):
        return [code for code in pages.get(addr >> 12, ()) if code.addr <= addr < code.addr + code.size]

    seen = frames(jitgraft, os.path.join(directory, "perf.data"))
    here = {addr: at(addr) for addr in {addr for _, addr, _, _ in seen}}
    # Built-in code is made before the log begins.
    once = [(time, here[addr][0]) for time, addr, _, _ in seen if len(here[addr]) == 1]
    offset = min(time - code.made for time, code in once if not code.name.startswith(("Builtin", "Bytecode")))
    count, addresses, wrong, pairs = collections.Counter(), collections.defaultdict(set), [], collections.Counter()
    for (time, addr, name, inlined), often in seen.items():
        codes = here[addr]
        if not codes or not TAGS.match(name):
            # node's own file names its built-in code.
            unnamed = codes and not all(code.name.startswith(("Builtin", "Bytecode")) for code in codes)
            count["in the log, without a name" if unnamed else "of no code in the log"] += often
            continue
        alive = [code for code in codes if code.made <= time - offset < code.gone] or codes
        code = max(enumerate(alive), key=lambda one: (one[1].made, one[0]))[1]
        count["V8 frames"] += often
        count["with several names in the course of time"] += often * (len({code.name for code in codes}) > 1)
        count["same name"] += often * (name == code.name)
        if name != code.name:
            wrong.append((time - offset, hex(addr), name, code.name))
        chain = code.chain(addr)
        got = tuple(re.sub(r"^\w+:(?:o?[~^+*]'?)?", "", function) for function in inlined)
        if chain or got:
            count["frames with inlined calls"] += often
            count["same chain"] += often * (got == chain)
            addresses["all"].add((addr, name))
            if got != chain:
                addresses["wrong"].add((addr, name))
                wrong.append((time - offset, hex(addr), name, got, chain))
            if re.match(r"\w+:o?\*", name):
                for function in got:
                    pairs[function, re.sub(r"^\w+:(?:o?[~^+*]'?)?", "", name)] += often
    print(os.path.basename(os.path.normpath(directory)), dict(count))
    every, other = len(addresses["all"]), len(addresses["wrong"])
    print(f"  addresses with inlined calls: {every}, the same chain at {every - other}")
    if trace:
        traced = re.compile(r"<SharedFunctionInfo ?([^>]*)>\} into [^{]*\{0x[0-9a-f]+ <SharedFunctionInfo ?([^>]*)>\}")
        told = set(traced.findall(open(trace, errors="replace").read()))

        def short(name):
            match = PLACE.match(name)
            return (match[1] if match else name).strip()

        known = {pair for pair in pairs if (short(pair[0]), short(pair[1])) in told}
        print(f"  turbofan: {len(pairs)} pairs of inlined function and function, of which the engine traced {len(known)}")
        for pair in list(set(pairs) - known)[:5]:
            print("    not traced:", pair)
    for one in wrong[:8]:
        print("  DIFFERENT", one)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
