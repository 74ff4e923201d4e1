"""Reads what `jitgraft export` wrote for OpenTelemetry with the official classes (PyPI: opentelemetry-proto) on Google's
protobuf runtime, and compares it with the rows of the same recording in Parquet and with `jitgraft report`.

check.py DIR...: each has all.otlp, all.otlp.json, all.parquet and EVENT.report.json files; a line of figures for each.
"""

import collections
import glob
import json
import os
import sys

import pyarrow.parquet
from google.protobuf import json_format
from opentelemetry.proto.profiles.v1development import profiles_pb2

LONGEST = 4 << 20  # gRPC's limit, which collectors have by default

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def messages(path):
    """One message, or each behind its length as the Collector's file exporter has them."""
    data = open(path, "rb").read()
    if int.from_bytes(data[:4], "big") + 4 > len(data) or data[:1] == b"\n":
        return [data]
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        assert 0 < size <= len(data) - 4, (path, size, len(data))
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found


def parsed(path):
    read = []
    for message in messages(path):
        assert len(message) <= LONGEST, f"{path}: a message of {len(message)} bytes"
        data = profiles_pb2.ProfilesData()
        data.ParseFromString(message)
        read.append(data)
    return read


def check_dictionary(data):
    """What profiles.proto asks of the tables: an empty first element, no duplicates, and nothing that is missing."""
    tables = data.dictionary
    for field, table in tables.ListFields():
        plain = [element if field.name == "string_table" else element.SerializeToString() for element in table]
        assert len(set(plain)) == len(plain), f"{field.name} has duplicates"
        if field.name == "link_table":
            assert bytes(table[0].trace_id) == bytes(16) and bytes(table[0].span_id) == bytes(8)
        else:
            assert not plain[0], f"{field.name}: its first element is not empty"
    assert len(tables.ListFields()) == 7, [field.name for field, _ in tables.ListFields()]


def value(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(one) for one in any_value.array_value.values]
    return getattr(any_value, kind)


class Frames:
    """The frames of a location, outermost first."""

    def __init__(self, tables):
        self.tables, self.known = tables, {}

    def attributes(self, indices):
        table, strings = self.tables.attribute_table, self.tables.string_table
        return {strings[table[at].key_strindex]: value(table[at].value) for at in indices}

    def of(self, at):
        if at not in self.known:
            self.known[at] = self.read(self.tables.location_table[at])
        return self.known[at]

    def read(self, location):
        tables, strings = self.tables, self.tables.string_table
        mapping = tables.mapping_table[location.mapping_index]
        module = strings[mapping.filename_strindex].rsplit("/", 1)[-1] if location.mapping_index else None
        attributes = self.attributes(location.attribute_indices)
        build_id = self.attributes(mapping.attribute_indices).get("process.executable.build_id.gnu")
        kind, tier = attributes.get("profile.frame.type"), attributes.get("jitgraft.tier")
        # The address in the file.
        address = location.address
        if mapping.memory_start <= address < mapping.memory_limit:
            address += mapping.file_offset - mapping.memory_start
        functions = [tables.function_table[line.function_index] for line in location.lines]
        names = [strings[function.name_strindex] for function in functions]
        lines = [line.line or None for line in location.lines]
        # A function has its file also where a frame of it has no line: rows state files with lines only.
        files = [strings[function.filename_strindex] if line else None for function, line in zip(functions, lines)]
        if not names:
            # A module may be in brackets already.
            name = module if module and module.startswith("[") else f"[{module or 'unknown'}]"
            names, files, lines = [name], [None], [None]
        frames = [(name, module, build_id, file, line) for name, file, line in zip(names, files, lines)]
        kinds = ["inlined"] * (len(frames) - 1) + [kind]
        tiers = [None] * (len(frames) - 1) + [tier]
        # The innermost call comes first.
        return [(*frame, kind, tier, address) for frame, kind, tier in zip(frames, kinds, tiers)][::-1]


def observations(read):
    """(event, unit) -> of each observation who, when, how much, and in which stack."""
    found, counts, recording = collections.defaultdict(list), {}, {}
    for data in read:
        check_dictionary(data)
        strings, frames = data.dictionary.string_table, Frames(data.dictionary)
        for resource in data.resource_profiles:
            told = {one.key: value(one.value) for one in resource.resource.attributes}
            recording.setdefault("host", told.get("host.name"))
            recording.setdefault("arch", MACHINES.get(told.get("host.arch"), told.get("host.arch")))
            recording.setdefault("kernel", told.get("os.version"))
            assert told["service.name"], told
            for scope in resource.scope_profiles:
                assert scope.scope.name == "jitgraft"
                for profile in scope.profiles:
                    event = strings[profile.sample_type.type_strindex], strings[profile.sample_type.unit_strindex]
                    first, end = profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano
                    for sample in profile.samples:
                        who = frames.attributes(sample.attribute_indices)
                        who = told.get("process.pid"), who.get("thread.id"), who.get("thread.name"), who.get("cpu.logical_number")
                        stack = data.dictionary.stack_table[sample.stack_index].location_indices
                        stack = tuple(frame for at in reversed(stack) for frame in frames.of(at))
                        times = sample.timestamps_unix_nano
                        assert len(times) == len(sample.values) or len(sample.values) == 1 and not times
                        assert all(first <= time < end for time in times), "a time outside of its profile"
                        for at, weight in enumerate(sample.values):
                            found[event].append((who, times[at] if times else None, weight, stack))
    return found, recording


KINDS = {
    "kernel": {"kernel"},
    "native": {"native", "native, unnamed"},
    "inlined": {"inlined"},
    None: {"unnamed code (no file)", "unknown"},
}


def rows(path):
    """The same of a table."""
    table = pyarrow.parquet.read_table(path).to_pydict()
    count = len(table["event"])
    base = lambda module: module and module.rsplit("/", 1)[-1]
    found = collections.defaultdict(list)
    for at in range(count):
        row = {name: column[at] for name, column in table.items()}
        unit = "count" if row["unit"] == "samples" else row["unit"]
        stack = zip(
            row["functions"],
            map(base, row["modules"]),
            row["build_ids"],
            (file if line else None for file, line in zip(row["files"], row["lines"])),
            row["lines"],
            row["kinds"],
            row["tiers"],
            (0 if address is None else address % 2**64 for address in row["addresses"]),
        )
        who = row["pid"], row["tid"], row["comm"], row["cpu"]
        assert row["count"] == 1
        moment = row["time"] and int(row["time"].timestamp() * 1_000_000 + 0.5)
        found[row["event"], unit].append((who, row["time_ns"], row["weight"], tuple(stack), moment))
    return found, {name: table[name][0] for name in ("host", "arch", "kernel")} if count else {}


def compare(directory):
    read = parsed(os.path.join(directory, "all.otlp"))
    told, recording = observations(read)
    wanted, columns = rows(os.path.join(directory, "all.parquet"))
    assert set(told) == set(wanted), (set(told), set(wanted))
    assert recording == columns, (recording, columns)
    runtimes = collections.Counter()
    for event, observed in told.items():
        offset = min(time for _, time, _, _ in observed) - min(time for _, time, _, _, _ in wanted[event])
        plain = lambda stack: tuple(frame[:5] + frame[6:] for frame in stack)
        got = collections.Counter((who, time - offset, weight, plain(stack)) for who, time, weight, stack in observed)
        want = collections.Counter((who, time, weight, plain(stack)) for who, time, weight, stack, _ in wanted[event])
        assert got == want, (event, list((got - want).items())[:2], list((want - got).items())[:2])
        # Times of the wall clock, where that is known; else they are the recording's own.
        moments = {moment for *_, moment in wanted[event]}
        assert moments == {None} and offset == 0 or moments == {time // 1000 for _, time, _, _ in observed}, offset
        kinds = lambda stack: tuple(frame[5] for frame in stack)
        pairs = zip(
            sorted((time - offset, weight, who, plain(stack), kinds(stack)) for who, time, weight, stack in observed) if False else [],
            [],
        )
        by_frame = collections.defaultdict(set)
        for *_, stack, _ in wanted[event]:
            for frame in stack:
                by_frame[frame[:5] + frame[6:]].add(frame[5])
        for *_, stack in observed:
            for frame in stack:
                kind, ours = frame[5], by_frame[frame[:5] + frame[6:]]
                if kind in KINDS:
                    assert KINDS[kind] & ours, (frame, ours)
                else:
                    assert {"JIT", "JIT, unnamed"} & ours, (frame, ours)
                    runtimes[kind] += 1
    compare_report(directory, told)
    total = sum(len(observed) for observed in told.values())
    weights = {f"{event} ({unit})": sum(weight for _, _, weight, _ in observed) for (event, unit), observed in told.items()}
    print(json.dumps({"messages": len(read), "observations": total, "weights": weights, "runtimes": dict(runtimes)}))


def compare_report(directory, told):
    """Self and total weight of each function."""
    for path in glob.glob(os.path.join(glob.escape(directory), "*.report.json")):
        event = os.path.basename(path)[: -len(".report.json")]
        (observed,) = (observed for (name, _), observed in told.items() if name == event)
        own, total, samples = (collections.Counter() for _ in range(3))
        for _, _, weight, stack in observed:
            functions = [frame[:2] for frame in stack]
            if functions:
                own[functions[-1]] += weight
                samples[functions[-1]] += 1
            for function in set(functions):
                total[function] += weight
        wanted_own, wanted_total, wanted_samples = (collections.Counter() for _ in range(3))
        for row in json.load(open(path)):
            module = row["module"] and row["module"].rsplit("/", 1)[-1]
            function = row["symbol"], module
            wanted_own[function] += row["self"]
            wanted_total[function] += row["total"]
            wanted_samples[function] += row["samples"]
        differing = lambda one, other: [(key, one[key], other[key]) for key in one | other if one[key] != other[key]][:3]
        assert +own == +wanted_own, differing(own, wanted_own)
        assert +samples == +wanted_samples, differing(samples, wanted_samples)
        heavier = differing(total, wanted_total)
        assert not heavier, heavier


def compare_json(directory):
    """JSON is the same message, by Google's own rules."""
    lines = open(os.path.join(directory, "all.otlp.json"), encoding="utf-8").read().splitlines()
    read = parsed(os.path.join(directory, "all.otlp"))
    assert len(lines) == len(read)
    for line, data in zip(lines, read):
        # Numbers of traces and spans are hexadecimal digits in OTLP, and base64 in protobuf's JSON.
        document = json.loads(line)
        for link in document["dictionary"]["linkTable"]:
            for key in list(link):
                del link[key]
        again = json_format.ParseDict(document, profiles_pb2.ProfilesData())
        del again.dictionary.link_table[:]
        del data.dictionary.link_table[:]
        assert again == data


for directory in sys.argv[1:]:
    compare(directory)
    compare_json(directory)
