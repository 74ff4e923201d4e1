#!/usr/bin/env python3
"""hotspot.py JITGRAFT JAVA…: records fixtures/hotspot-log/Reload.java under each of these, with neither a perf map nor a jitdump
at hand, and tells what HotSpot's artefacts name of the frames in JIT memory, each by itself and map and log together:

  map    jcmd PID Compiler.perfmap, shortly before the program ends
  list   jcmd PID Compiler.codelist, at the same moment
  log    -XX:+LogCompilation

Each name is held against readers of this file, which share nothing with jitgraft: by address alone, so where the log had several
methods at one address, the name must be one of them (tests/end_to_end/hotspot_logs.rs judges them by time). Exits with 1 if a name is none.
Needs perf, javac and jcmd (any JDK's)."""
import bisect, glob, os, re, shutil, subprocess, sys, tempfile, time

SECONDS = 24
TYPES = dict(B="byte", C="char", D="double", F="float", I="int", J="long", S="short", V="void", Z="boolean")
MARKS = {"1": " [c1]", "2": " [c1]", "3": " [c1]", "4": " [c2]"}


def spelled(name, descriptor):
    """As HotSpot's map spells `class.method`."""
    types = []
    for arrays, kind in re.findall(r"(\[*)(L[^;]*;|[A-Z]|\))", descriptor[1:]):
        types.append(")" if kind == ")" else (TYPES.get(kind) or kind[1:-1].replace("/", ".")) + "[]" * len(arrays))
    return f"{types[-1]} {name}({', '.join(types[:-2])})"


def plain(text):
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&apos;", "'").replace("&quot;", '"').replace("&amp;", "&")


def of_map(path):
    for line in open(path, errors="replace"):
        start, size, name = line.rstrip("\n").split(" ", 2)
        yield int(start, 16), int(size, 16), name


def of_list(path):
    for line in open(path, errors="replace"):
        if match := re.match(r"\d+ (\d) \d (.*?)(\([^(]*) \[0x[0-9a-f]+, (0x[0-9a-f]+) - (0x[0-9a-f]+)\]", line):
            start, end = int(match[4], 16), int(match[5], 16)
            yield start, end - start, spelled(match[2], match[3]) + MARKS.get(match[1], "")


def of_log(path):
    for line in open(path, errors="replace"):
        if not line.startswith("<nmethod "):
            continue
        told = {key: plain(value) for key, value in re.findall(r" (\w+)='([^']*)'", line)}
        entry, address = int(told["entry"], 16), int(told["address"], 16)
        end = address + int(told.get("oops_offset", told["size"]))
        owner, name, descriptor = told["method"].split(" ")
        mark = f" [{told['compiler']}]" if told.get("compiler") else ""
        yield entry, end - entry, spelled(f"{owner}.{name}", descriptor) + mark


def record(java, work):
    out = os.path.join(work, "java.out")
    command = ["perf", "record", "-q", "-k", "mono", "-e", "cpu-clock:u", "-F", "299", "-g", "-o", "perf.data", java,
               "-XX:+PreserveFramePointer", "-XX:+UnlockDiagnosticVMOptions", "-XX:+LogCompilation", "-XX:ReservedCodeCacheSize=8m",
               "-XX:+UseSerialGC", "-Xmx64m", "-cp", work, "Reload", str(SECONDS)]
    with open(out, "w") as said:
        running = subprocess.Popen(command, cwd=work, stdout=said, stderr=said)
        pid, until = None, time.time() + 60
        while not pid and time.time() < until:
            logs = glob.glob(os.path.join(work, "hotspot_pid*.log"))
            pid = logs and re.search(r"pid(\d+)", logs[0])[1]
            time.sleep(0.2)
        time.sleep(SECONDS - 14)
        listed = subprocess.run(["jcmd", pid, "Compiler.codelist"], capture_output=True, text=True).stdout
        open(os.path.join(work, f"codelist-{pid}.txt"), "w").write(listed)
        mapped = subprocess.run(["jcmd", pid, "Compiler.perfmap"], capture_output=True, text=True)
        running.wait()
    if not os.path.exists(f"/tmp/perf-{pid}.map"):
        sys.exit(f"jcmd left no map: {listed} {mapped}")
    shutil.move(f"/tmp/perf-{pid}.map", os.path.join(work, f"perf-{pid}.map"))
    return pid


def frames(program, where):
    """What each line of a frame says: address, name and file, sample by sample."""
    command = [program, "script", "--no-inline", "-F", "ip,sym,dso", "-i", "perf.data"]
    text = subprocess.run(command, cwd=where, capture_output=True, text=True).stdout
    return [re.match(r"\s*([0-9a-f]+) (.*) \((.*)\)$", line).groups() for line in text.splitlines() if line.startswith("\t")]


def main():
    jitgraft, bad = os.path.abspath(sys.argv[1]), 0
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../fixtures/hotspot-log/Reload.java")
    for java in sys.argv[2:]:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
            subprocess.run(["javac", "--release", "17", "-encoding", "UTF-8", "-d", work, source], check=True)
            pid = record(java, work)
            version = subprocess.run([java, "-version"], capture_output=True, text=True).stderr.split('"')[1]
            artefacts = {"map": ([f"perf-{pid}.map"], of_map), "list": ([f"codelist-{pid}.txt"], of_list),
                         "log": ([f"hotspot_pid{pid}.log"], of_log)}
            artefacts["map and log"] = (artefacts["map"][0] + artefacts["log"][0], None)
            alone = os.path.join(work, "alone")
            os.mkdir(alone)
            os.rename(os.path.join(work, "perf.data"), os.path.join(alone, "perf.data"))
            is_jit = lambda frame: frame[2].startswith(("//anon", "[anon", "/tmp/perf-"))
            by_perf = sum(is_jit(frame) and frame[1] != "[unknown]" for frame in frames("perf", alone))
            before = frames(jitgraft, alone)
            in_jit = [at for at, frame in enumerate(before) if is_jit(frame)]
            for name, (files, reader) in artefacts.items():
                for file in files:
                    shutil.copy2(os.path.join(work, file), alone)
                after = frames(jitgraft, alone)
                for file in files:
                    os.remove(os.path.join(alone, file))
                assert [frame[0] for frame in before] == [frame[0] for frame in after], "the same addresses"
                readers = [reader] if reader else [of_map, of_log]
                codes = sorted(code for file, read in zip(files, readers) for code in read(os.path.join(work, file)))
                starts, longest = [code[0] for code in codes], max(code[1] for code in codes)
                named = equal = one_of = none = 0
                for at in in_jit:
                    if after[at][1] == "[unknown]":
                        continue
                    named += 1
                    addr, known = int(after[at][0], 16), set()
                    # The address of a caller is behind its call.
                    for looked_up in (addr, addr - 1):
                        first = bisect.bisect_right(starts, looked_up - longest)
                        for start, size, code in codes[first:bisect.bisect_right(starts, looked_up)]:
                            if start <= looked_up < start + size:
                                known.add(code)
                    equal += known == {after[at][1]}
                    one_of += len(known) > 1 and after[at][1] in known
                    none += after[at][1] not in known
                bad += none
                print(f"{version}\t{name}\t{len(in_jit)} frames in JIT memory\tperf {by_perf}\tnamed {named}\t"
                      f"the only name there {equal}\tone of several {one_of}\tanother {none}", flush=True)
    sys.exit(bad > 0)


main()
