"""Profiles of programs with just-in-time compiled code, as Arrow batches.

>>> import jitgraft
>>> for batch in jitgraft.read("perf.data"):
...     print(batch.num_rows)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from importlib import metadata
from typing import IO, TYPE_CHECKING, Any, Iterable, Iterator, Optional, Union

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Error", "JitgraftWarning", "__version__", "command", "read", "write"]

StrPath = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Value = Union[None, bool, int, float, StrPath]
Option = Union[Value, Iterable[Value]]

#: Options that would make the command write something other than the table, or elsewhere.
_REFUSED = ("to", "o", "output")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return metadata.version("jitgraft")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Error(Exception):
    """A failure of the command."""

    #: The file that it was reading, if it said so.
    file: Optional[str]
    #: The byte of that file, if it said so.
    offset: Optional[int]
    #: What was wrong.
    message: str
    #: The command's exit status: 1 for a failure, 2 for wrong options, below 0 for the signal that ended it.
    status: int

    def __init__(self, message: str, status: int, file: Optional[str] = None, offset: Optional[int] = None) -> None:
        place = "" if file is None else f"{file}: "
        at = "" if offset is None else f"at byte {offset:#x}: "
        super().__init__(f"{place}{at}{message}")
        self.message, self.status, self.file, self.offset = message, status, file, offset

    def __reduce__(self) -> tuple[type[Error], tuple[str, int, Optional[str], Optional[int]]]:
        # Engines send exceptions from process to process.
        return type(self), (self.message, self.status, self.file, self.offset)


class JitgraftWarning(UserWarning):
    """A problem that the command survived: skipped records, files that were not used."""


def command() -> str:
    """The path of the command: the wheel's own, else the first one on PATH."""
    for directory in (sysconfig.get_path("scripts"), os.path.dirname(sys.executable)):
        own = os.path.join(directory, "jitgraft")
        if os.access(own, os.X_OK) and os.path.isfile(own):
            return own
    found = shutil.which("jitgraft")
    if found is None:
        raise FileNotFoundError("the command jitgraft is neither beside this Python nor on PATH")
    return found


def read(paths: StrPath | Iterable[StrPath], **options: Option) -> pyarrow.RecordBatchReader:
    """Reads profiles of any supported format, as the batches of a table in a temporary file.

    Options are the flags of ``jitgraft export``: ``event="cycles"``, ``no_inline=True``, ``jitdump=[a, b]``.
    Raises :class:`Error` if the command fails. The file has no name, and is gone with the reader.
    """
    import pyarrow.parquet

    inputs = _inputs(paths)
    words = ["--to", "parquet", *_flags(options), "--", *map(_as_file, inputs)]
    with tempfile.TemporaryFile(prefix="jitgraft-") as written:
        _export(words, inputs, written)
        # Opened anew, the file is open as long as the reader.
        table = pyarrow.OSFile(f"/proc/self/fd/{written.fileno()}")
    columns = pyarrow.parquet.ParquetFile(table).schema
    leaves = [columns.column(place) for place in range(len(columns))]
    texts = [leaf.path for leaf in leaves if leaf.logical_type.type == "STRING" and not leaf.path.startswith("labels.")]
    file = pyarrow.parquet.ParquetFile(table, read_dictionary=texts)
    schema = file.schema_arrow
    for place, field in enumerate(schema):
        schema = schema.set(place, field.with_type(_narrowed(field)))

    def batches() -> Iterator[pyarrow.RecordBatch]:
        for batch in file.iter_batches(batch_size=1 << 14):
            cells = [_cast(column, field.type) for column, field in zip(batch.columns, schema)]
            yield pyarrow.RecordBatch.from_arrays(cells, schema=schema)

    return pyarrow.RecordBatchReader.from_batches(schema, batches())


def _narrowed(field: pyarrow.Field) -> pyarrow.DataType:
    """The type of a column: kinds and tiers are a few words, which a byte numbers."""
    import pyarrow

    word = pyarrow.dictionary(pyarrow.int8(), pyarrow.string())
    if field.name in ("leaf_kind", "leaf_tier"):
        return word
    if field.name in ("kinds", "tiers"):
        return pyarrow.list_(field.type.value_field.with_type(word))
    return field.type


def _cast(cells: pyarrow.Array, to: pyarrow.DataType) -> pyarrow.Array:
    """A column in the type of :func:`_narrowed`."""
    import pyarrow

    if cells.type == to:
        return cells
    if pyarrow.types.is_list(to):
        return pyarrow.ListArray.from_arrays(cells.offsets, _cast(cells.values, to.value_type), type=to)
    return pyarrow.DictionaryArray.from_arrays(cells.indices.cast(to.index_type), cells.dictionary)


def write(paths: StrPath | Iterable[StrPath], output: StrPath, **options: Option) -> None:
    """Writes profiles of any format to Parquet, without a row of them passing through Python.

    Options are the flags of ``jitgraft export``; with ``partition=True`` the output is a directory, which gets a file for
    each input. Files are put in place whole. Raises and warns as :func:`read` does.
    """
    inputs = _inputs(paths)
    words = ["--to", "parquet", "-o", os.fsdecode(output), *_flags(options), "--", *map(_as_file, inputs)]
    _export(words, inputs, subprocess.DEVNULL)


def _export(words: list[str], inputs: list[str], out: Union[IO[bytes], int]) -> None:
    """Runs the command, and raises and warns for its messages on standard error."""
    done = subprocess.run([command(), "export", *words], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)
    said = done.stderr.decode(errors="replace").splitlines()
    if done.returncode != 0:
        raise _error(said, done.returncode, inputs)
    for line in said:
        if line.startswith("warning: "):
            warnings.warn(line[len("warning: ") :], JitgraftWarning, stacklevel=3)


def _inputs(paths: StrPath | Iterable[StrPath]) -> list[str]:
    inputs = [os.fsdecode(path) for path in ([paths] if isinstance(paths, (str, bytes, os.PathLike)) else paths)]
    if not inputs:
        raise ValueError("no path to read")
    return inputs


def _as_file(path: str) -> str:
    """``-`` is standard input to the command, which is closed, and ``@…`` a list."""
    return os.path.join(".", path) if path.startswith(("-", "@")) else path


def _flags(options: dict[str, Option]) -> list[str]:
    flags: list[str] = []
    for name, option in options.items():
        if name in _REFUSED:
            raise TypeError(f"{name} is not an option here: this function always reads rows")
        flag = "--" + name.replace("_", "-")
        is_one = option is None or isinstance(option, (str, bytes, os.PathLike)) or not isinstance(option, Iterable)
        for value in [option] if is_one else option:  # type: ignore[union-attr]
            if value is True:
                flags.append(flag)
            elif value is not None and value is not False:
                flags.append(f"{flag}={os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else value}")
    return flags


def _error(said: list[str], status: int, inputs: list[str]) -> Error:
    """The last line that begins with ``error:``, taken apart: ``FILE: at byte OFFSET: MESSAGE``. A hint is appended."""
    last = next((at for at in reversed(range(len(said))) if said[at].startswith("error: ")), None)
    if last is None:
        ended = f"was ended by signal {-status}" if status < 0 else f"failed with status {status}"
        return Error("; ".join([f"the command {ended}", *said[-1:]]), status)
    hints = [line[len("hint: ") :] for line in said[last + 1 :] if line.startswith("hint: ")]
    text = "; ".join([said[last][len("error: ") :], *hints])
    placed = re.match(r"(?P<file>.+?): at byte (?P<offset>0x[0-9a-f]+): (?P<message>.*)", text)
    if placed:
        return Error(placed["message"], status, placed["file"], int(placed["offset"], 16))
    for path in inputs:
        for shown in (path, _as_file(path)):
            if text.startswith(f"{shown}: "):
                return Error(text[len(shown) + 2 :], status, path)
    return Error(text, status)
