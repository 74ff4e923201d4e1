"""The commands that start each side."""

import os
import subprocess

import inputs


# Our side -------------------------------------------------------------------------------------------------------


def ours(command, *options, result=True):
    """A command of ours, that writes to a file or to its standard output."""

    def stages(program, given, threads):
        words = [program, command, *options, "--threads", str(threads), given.path]
        return [[*words, "-o", given.result] if result else words]

    return stages


def inject(program, given, threads):
    return [[program, "inject", "-f", "--threads", str(threads), "-i", given.path, "-o", given.result]]


def script(program, given, threads):
    return [[program, "script", "--threads", str(threads), given.path]]


def script_named(program, given, threads):
    """With the perf map beside the text."""
    return [[*script(program, given, threads)[0], "--perf-map", os.path.join(os.path.dirname(given.path), "perf-7.map")]]


FIREFOX = ours("export", "--to", "firefox")


# The other side ---------------------------------------------------------------------------------------------------


def perf_inject(tool):
    return lambda given, _: [[tool, "inject", "--jit", "-f", "-i", given.path, "-o", given.result]]


def copy(given, _):
    return [["cp", "--reflink=never", given.path, given.result]]


def perf_script(tool, *options):
    """perf script, then inferno's two."""
    return lambda given, threads: [
        [tool, "script", *options, "-f", "-i", given.path],
        ["inferno-collapse-perf", "-n", str(threads)],
        ["inferno-flamegraph"],
    ]


def perf_collapse(tool, *options):
    return lambda given, threads: perf_script(tool, *options)(given, threads)[:2]


def inferno(given, threads):
    return [["inferno-collapse-perf", "-n", str(threads), given.path]]


def inferno_alone(given, _):
    return inferno(given, 1)


def with_path(*words):
    """A program that takes the input's name last."""
    return lambda given, _: [[*words, given.path]]


def samply(given, _):
    return [["samply", "import", "--save-only", "--no-open", "-o", given.result, given.path]]


def stack_collapse(given, _):
    return [["stack_collapse", given.path.removesuffix(".mm_profdata")]]


# The shared input -----------------------------------------------------------------------------------------------------


def recorded(name):
    return lambda place, times: place.given(place.repeated(name, times), place.at("recordings", name))


def named(name):
    """A recording whose names are in it, so that perf has them, too."""

    def make(place, times):
        path = place.repeated(name, times)
        fill = lambda new: subprocess.run([place.program, "inject", "-q", "-f", "-i", path, "-o", new], check=True)
        return place.given(place.made(f"{name}-{times}.named.data", fill))

    return make


def loads(count, samples, *words):
    def make(place, times):
        name = f"loads-{count * times}-{'-'.join(words)}".replace("=", "-")
        directory = place.generated(name, str(count * times), str(samples), *words)
        return place.given(f"{directory}/perf.data", directory)

    return make


def text(samples, distinct):
    def make(place, times):
        name, count = f"text-{distinct or 'all'}-{times}.txt", samples * times
        return place.given(place.made(name, lambda new: inputs.script_text(new, count, distinct or count)))

    return make


def unnamed(samples, distinct):
    def make(place, times):
        name = f"unnamed-{distinct}-{times}"
        made = place.made(name, lambda new: inputs.unnamed_text(new, samples * times, distinct))
        return place.given(f"{made}/unnamed.txt")

    return make


def folded(lines):
    return lambda place, times: place.given(
        place.made(f"folded-{times}.txt", lambda new: inputs.folded(new, lines * times))
    )


def callgrind(functions):
    def make(place, times):
        made = place.made(f"callgrind-{functions * times}", lambda new: inputs.callgrind(new, functions * times))
        return place.given(f"{made}/callgrind.out.7")

    return make


def trace(spans):
    return lambda place, times: place.given(
        place.made(f"trace-{times}.json", lambda new: inputs.trace(new, spans * times))
    )


def calls(count):
    return lambda place, times: place.given(
        place.made(f"calls-{times}.mm_profdata", lambda new: inputs.profile(new, count * times))
    )


def profiled(name):
    return lambda place, _: place.given(place.recording(name, "profile.mm_profdata"))
