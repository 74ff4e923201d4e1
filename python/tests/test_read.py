"""`jitgraft.read`, over the command that `jitgraft.command` finds."""

import importlib.metadata
import os
import pickle
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.compute
import pyarrow.parquet
import pytest

import jitgraft

FIXTURES = Path(__file__).parents[2] / "fixtures"
RECORDING = FIXTURES / "php-recording" / "perf.data.zst"


def folded(*words):
    """The sums by stack of the command's own folded stacks: another way to the same figures."""
    text = subprocess.run([jitgraft.command(), "collapse", "-q", *words], check=True, capture_output=True, text=True)
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.stdout.splitlines())


def sums(reader):
    table = reader.read_all()
    return pyarrow.compute.sum(table["weight"]).as_py(), pyarrow.compute.sum(table["count"]).as_py()


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A command of the test's own in place of jitgraft."""

    def make(script):
        path = tmp_path / "jitgraft"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(jitgraft, "command", lambda: str(path))

    return make


@pytest.fixture
def table(tmp_path):
    """A file of three thousand rows."""
    path = tmp_path / "table"
    pyarrow.parquet.write_table(pyarrow.table({"weight": list(range(1000)) * 3}), path)
    return path


def test_a_recording_has_the_totals_of_the_command():
    weight, count = sums(jitgraft.read(RECORDING))
    assert weight == folded(str(RECORDING)) > 0
    assert count == folded("--weight", "samples", str(RECORDING)) > 0


def test_several_paths_and_options_are_the_command_s_own(tmp_path):
    one, two = tmp_path / "-one", tmp_path / "@two"
    one.write_text("main;f 3\n")
    two.write_text("main;f 4\nmain;g 5\n")
    assert sums(jitgraft.read([one, str(two)]))[0] == 12
    os.chdir(tmp_path)
    assert sums(jitgraft.read(["-one", "@two"]))[0] == 12
    assert sums(jitgraft.read(RECORDING, max_stack=1, no_inline=True, pid=[31795], event=None)) > (0, 0)


def test_duckdb_reads_a_recording_without_a_file():
    samples = jitgraft.read(RECORDING)
    ((weight,),) = duckdb.sql("select sum(weight)::bigint from samples").fetchall()
    assert weight == folded(str(RECORDING))


def test_what_cannot_be_read_is_an_error_with_its_file(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("hello\n")
    with pytest.raises(jitgraft.Error) as raised:
        jitgraft.read(text)
    assert (raised.value.file, raised.value.status) == (str(text), 1)
    assert "is in an unknown format" in raised.value.message
    with pytest.raises(jitgraft.Error, match="No such file"):
        jitgraft.read(tmp_path / "missing")


def test_an_error_tells_the_byte(tmp_path, fake):
    fake("echo 'error: a b.data: at byte 0x1a40: total_size is 8' >&2; exit 1")
    with pytest.raises(jitgraft.Error) as raised:
        jitgraft.read("a b.data")
    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.file, error.offset, error.message, error.status) == ("a b.data", 0x1A40, "total_size is 8", 1)
    assert str(error) == "a b.data: at byte 0x1a40: total_size is 8"


def test_a_command_that_fails_behind_its_output_is_an_error(fake, table):
    fake(f"cat {table}; echo 'error: x: at byte 0x10: cut off' >&2; exit 1")
    with pytest.raises(jitgraft.Error, match="x: at byte 0x10: cut off"):
        jitgraft.read("x")
    fake(f"cat {table}; kill -9 $$")
    with pytest.raises(jitgraft.Error, match="was ended by signal 9"):
        jitgraft.read("x")


def test_texts_are_dictionaries_and_kinds_of_a_byte():
    schema = jitgraft.read(RECORDING).schema
    text, word = (pyarrow.dictionary(of, pyarrow.string()) for of in (pyarrow.int32(), pyarrow.int8()))
    types = {field.name: field.type for field in schema}
    assert len(types) == 46 and schema.metadata[b"jitgraft.schema"] == b"3"
    assert all(types[name] == text for name in ("input", "host", "event", "comm", "leaf", "leaf_module"))
    assert types["leaf_kind"] == types["leaf_tier"] == word
    assert all(types[name].value_type == text for name in ("functions", "modules", "build_ids", "files"))
    assert all(types[name].value_type == word for name in ("kinds", "tiers"))
    assert types["time"] == types["start"] == pyarrow.timestamp("us", "UTC") and types["day"] == pyarrow.date32()
    assert types["lines"].value_type == pyarrow.int32() and types["addresses"].value_type == pyarrow.int64()
    assert types["labels"] == pyarrow.map_(pyarrow.string(), pyarrow.string())


def test_rows_are_those_of_the_written_file(tmp_path):
    jitgraft.write(RECORDING, tmp_path / "t.parquet", no_inline=True)
    written = pyarrow.parquet.read_table(tmp_path / "t.parquet").to_pylist()
    assert jitgraft.read(RECORDING, no_inline=True).read_all().to_pylist() == written != []


def test_an_option_that_there_is_not_is_status_2():
    with pytest.raises(jitgraft.Error) as raised:
        jitgraft.read(RECORDING, no_such_option=True)
    assert raised.value.status == 2


def test_what_was_survived_is_a_warning(tmp_path):
    cut = tmp_path / "cut.folded"
    cut.write_text("main;f 3\nmain;g 4\n" * 8000 + "main;f\n")
    with pytest.warns(jitgraft.JitgraftWarning, match="cut.folded: .*1 line skipped"):
        reader = jitgraft.read(cut)
    assert sums(reader)[0] == 7 * 8000


def test_a_recording_is_written_as_it_is_read(tmp_path):
    jitgraft.write(RECORDING, tmp_path / "one.parquet")
    jitgraft.write([RECORDING], tmp_path / "set", partition=True)
    (parted,) = (tmp_path / "set").glob("samples/host=*/day=*/*.parquet")
    for written in (tmp_path / "one.parquet", parted):
        table = pyarrow.parquet.ParquetFile(written).read()
        assert pyarrow.compute.sum(table["weight"]).as_py() == sums(jitgraft.read(RECORDING))[0] > 0


def test_writing_raises_and_warns_as_reading_does(tmp_path, fake):
    with pytest.raises(jitgraft.Error, match="No such file") as raised:
        jitgraft.write(tmp_path / "missing", tmp_path / "out.parquet")
    assert raised.value.status == 1 and not (tmp_path / "out.parquet").exists()
    with pytest.raises(ValueError):
        jitgraft.write([], tmp_path / "out.parquet")
    fake("echo 'warning: x: 1 line skipped' >&2")
    with pytest.warns(jitgraft.JitgraftWarning, match="x: 1 line skipped") as warned:
        jitgraft.write("x", tmp_path / "out.parquet")
    assert warned[0].filename == __file__, "it is said of the line that asked"


def test_a_whole_recording_read_to_its_end_warns_of_nothing_else(fake, table):
    fake(f"cat {table}; echo 'names: all there' >&2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jitgraft.read("x").read_all().num_rows == 3000


def test_all_that_a_reader_can_do_is_done(fake, table):
    fake(f"cat {table}")
    rows = {
        "read_all": jitgraft.read("x").read_all().num_rows,
        "iter": sum(batch.num_rows for batch in jitgraft.read("x")),
        "stream": pyarrow.table(jitgraft.read("x")).num_rows,
        "cast": jitgraft.read("x").cast(pyarrow.schema({"weight": pyarrow.int32()})).read_all().num_rows,
    }
    assert set(rows.values()) == {3000}, rows


def test_paths_may_be_bytes_and_options_any_row_of_values(tmp_path):
    text = tmp_path / "stacks.folded"
    text.write_text("main;f 3\n")
    assert sums(jitgraft.read(os.fsencode(text)))[0] == 3
    jitgraft.write([os.fsencode(text)], os.fsencode(tmp_path / "t.parquet"), label=(f"k{n}=v" for n in range(2)))
    (labels,) = pyarrow.parquet.read_table(tmp_path / "t.parquet")["labels"].to_pylist()
    assert labels == [("k0", "v"), ("k1", "v")]
    assert sums(jitgraft.read(RECORDING, pid=range(31795, 31797)))[0] == folded(str(RECORDING))


@pytest.mark.parametrize("option", ["to", "o", "output"])
def test_what_is_no_table_is_refused(tmp_path, option):
    with pytest.raises(TypeError, match=option):
        jitgraft.write(RECORDING, tmp_path / "out", **{option: "folded"})
    with pytest.raises(TypeError, match=option):
        jitgraft.read(RECORDING, **{option: "folded"})


def test_the_package_says_its_version():
    own = subprocess.run([jitgraft.command(), "--version"], capture_output=True, check=True, text=True).stdout
    try:
        assert own.split()[1] == jitgraft.__version__
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("not installed as a wheel")


def test_the_module_runs_the_command():
    words = [sys.executable, "-m", "jitgraft", "--version"]
    environment = {**os.environ, "PYTHONPATH": str(Path(jitgraft.__file__).parents[1])}
    own = subprocess.run([jitgraft.command(), "--version"], capture_output=True, check=True).stdout
    assert subprocess.run(words, capture_output=True, check=True, env=environment).stdout == own
