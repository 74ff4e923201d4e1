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
from typing import IO, TYPE_CHECKING, Any, Iterable, Optional, Union

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
    """Reads profiles of any supported format, batch by batch, while it writes them.

    Options are the flags of ``jitgraft export``: ``event="cycles"``, ``no_inline=True``, ``jitdump=[a, b]``.
    Raises :class:`Error` if the command fails, here or while batches are read. Closing the reader, which ``with``
    does at the end of its block, ends the command.
    """
    inputs, flags = _inputs(paths), _flags(options)
    batches = _Batches([command(), "export", "--to", "arrow", *flags, "--", *map(_as_file, inputs)], inputs)
    return _reader(batches)


def _reader(batches: _Batches) -> pyarrow.RecordBatchReader:
    """A reader that ends the command when it is closed; pyarrow's own leaves that to the garbage collector."""
    import pyarrow

    inner = pyarrow.RecordBatchReader.from_batches(batches.schema, batches)

    class Reader(pyarrow.RecordBatchReader):
        def __init__(self) -> None:
            """Nothing is made: all is the other reader's."""

        schema = property(lambda self: inner.schema)

        def close(self) -> None:
            inner.close()
            batches._end()

        def __exit__(self, *raised: object) -> None:
            self.close()

    def delegate(name: str) -> Any:
        return lambda self, *args, **named: getattr(inner, name)(*args, **named)

    for name in (
        "__arrow_c_stream__ __iter__ __next__ _export_to_c cast iter_batches_with_custom_metadata read_all "
        "read_next_batch read_next_batch_with_custom_metadata read_pandas"
    ).split():
        setattr(Reader, name, delegate(name))
    return Reader.__new__(Reader)


def write(paths: StrPath | Iterable[StrPath], output: StrPath, **options: Option) -> None:
    """Writes profiles of any format to Parquet, without a row of them passing through Python.

    Options are the flags of ``jitgraft export``; with ``partition=True`` the output is a directory, which gets a file for
    each input. Files are put in place whole. Raises and warns as :func:`read` does.
    """
    inputs = _inputs(paths)
    words = ["--to", "parquet", "-o", os.fsdecode(output), *_flags(options), "--", *map(_as_file, inputs)]
    with tempfile.TemporaryFile(prefix="jitgraft-") as said:
        status = subprocess.run([command(), "export", *words], stdin=subprocess.DEVNULL, stderr=said).returncode
        _tell(said, status, inputs, cause=None, stacklevel=3)


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


class _Batches:
    """The batches of a running command. Its messages on standard error go to a file: a full pipe would stop it."""

    schema: pyarrow.Schema

    def __init__(self, words: list[str], inputs: list[str]) -> None:
        import pyarrow

        self._inputs = inputs
        self._said: IO[bytes] = tempfile.TemporaryFile(prefix="jitgraft-")
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._said
        )
        assert self._process.stdout is not None
        self._out: IO[bytes] = self._process.stdout
        try:
            self._reader = pyarrow.ipc.open_stream(self._out)
        except pyarrow.ArrowInvalid as no_stream:
            self._finish(cause=no_stream)
            raise AssertionError("the command ended well without a stream") from no_stream
        except BaseException:
            self._end()
            raise
        self.schema = self._reader.schema

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> pyarrow.RecordBatch:
        import pyarrow

        if self._out.closed:
            raise StopIteration  # the reader was closed, or is at its end
        try:
            return self._reader.read_next_batch()
        except StopIteration:
            # A stream that was cut at the end of a batch looks like one that is complete.
            self._finish(cause=None)
            raise
        except (pyarrow.ArrowInvalid, OSError) as cut:
            self._finish(cause=cut)
            raise

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self._end()

    def _end(self) -> None:
        """Ends the command at any point."""
        self._process.kill()
        self._out.close()
        self._process.wait()
        self._said.close()

    def _finish(self, cause: Optional[BaseException]) -> None:
        """Waits for the end of the command, and passes on its messages."""
        self._out.close()
        status = self._process.wait()
        with self._said:
            _tell(self._said, status, self._inputs, cause, stacklevel=5)
        if cause is not None:
            raise Error(f"the stream is damaged: {cause}", status) from cause


def _tell(file: IO[bytes], status: int, inputs: list[str], cause: Optional[BaseException], stacklevel: int) -> None:
    """Raises and warns for the command's messages on standard error."""
    file.seek(0)
    said = file.read().decode(errors="replace").splitlines()
    if status != 0:
        raise _error(said, status, inputs) from cause
    for line in said:
        if line.startswith("warning: "):
            warnings.warn(line[len("warning: ") :], JitgraftWarning, stacklevel=stacklevel)


def _error(said: list[str], status: int, inputs: list[str]) -> Error:
    """The last line that begins with ``error:``, taken apart: ``FILE: at byte OFFSET: MESSAGE``."""
    text = next((line[len("error: ") :] for line in reversed(said) if line.startswith("error: ")), None)
    if text is None:
        ended = f"was ended by signal {-status}" if status < 0 else f"failed with status {status}"
        return Error("; ".join([f"the command {ended}", *said[-1:]]), status)
    placed = re.match(r"(?P<file>.+?): at byte (?P<offset>0x[0-9a-f]+): (?P<message>.*)", text)
    if placed:
        return Error(placed["message"], status, placed["file"], int(placed["offset"], 16))
    for path in inputs:
        for shown in (path, _as_file(path)):
            if text.startswith(f"{shown}: "):
                return Error(text[len(shown) + 2 :], status, path)
    return Error(text, status)
