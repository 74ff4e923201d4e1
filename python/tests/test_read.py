"""`jitgraft.read`, over the command that `jitgraft.command` finds."""

import gc
import importlib.metadata
import os
import pickle
import stat
import subprocess
import sys
import time
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
def stream(tmp_path):
    """The bytes of a stream of three batches, and where each of them ends."""
    batch = pyarrow.record_batch({"weight": list(range(1000))})
    path, ends = tmp_path / "stream", []
    with open(path, "wb") as file, pyarrow.ipc.new_stream(file, batch.schema) as writer:
        for _ in range(3):
            writer.write_batch(batch)
            ends.append(file.tell())
    return path, ends


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
    assert "is none of the formats" in raised.value.message
    with pytest.raises(jitgraft.Error, match="No such file"):
        jitgraft.read(tmp_path / "missing")


def test_an_error_tells_the_byte(tmp_path, fake):
    fake("echo 'error: a b.data: at byte 0x1a40: total_size is 8' >&2; exit 1")
    with pytest.raises(jitgraft.Error) as raised:
        jitgraft.read("a b.data")
    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.file, error.offset, error.message, error.status) == ("a b.data", 0x1A40, "total_size is 8", 1)
    assert str(error) == "a b.data: at byte 0x1a40: total_size is 8"


def test_an_option_that_there_is_not_is_status_2():
    with pytest.raises(jitgraft.Error) as raised:
        jitgraft.read(RECORDING, no_such_option=True)
    assert raised.value.status == 2


def test_a_command_that_fails_behind_whole_batches_is_an_error_and_no_end(fake, stream):
    path, ends = stream
    fake(f"head -c {ends[1]} {path}; echo 'error: x: at byte 0x10: cut off' >&2; exit 1")
    reader = jitgraft.read("x")
    assert reader.read_next_batch().num_rows == reader.read_next_batch().num_rows == 1000
    with pytest.raises(jitgraft.Error, match="x: at byte 0x10: cut off"):
        reader.read_next_batch()


def test_a_stream_that_is_cut_within_a_batch_is_an_error(fake, stream):
    path, ends = stream
    fake(f"head -c {ends[1] + 50} {path}; kill -9 $$")
    with pytest.raises(jitgraft.Error, match="was ended by signal 9"):
        jitgraft.read("x").read_all()


def test_the_error_reaches_who_asks_duckdb(fake, stream):
    path, ends = stream
    fake(f"head -c {ends[1]} {path}; echo 'error: x: cut off' >&2; exit 1")
    samples = jitgraft.read("x")
    with pytest.raises(Exception, match="cut off"):
        duckdb.sql("select sum(weight) from samples").fetchall()
    del samples


def test_what_was_survived_is_a_warning(tmp_path):
    cut = tmp_path / "cut.folded"
    cut.write_text("main;f 3\nmain;g 4\n" * 8000 + "main;f\n")
    reader = jitgraft.read(cut)
    with pytest.warns(jitgraft.JitgraftWarning, match="cut.folded: .*1 line skipped"):
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


def test_a_whole_recording_read_to_its_end_warns_of_nothing_else(fake, stream):
    path, _ = stream
    fake(f"cat {path}; echo 'names: all there' >&2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jitgraft.read("x").read_all().num_rows == 3000


@pytest.mark.parametrize("read_some", [False, True])
def test_a_reader_that_is_dropped_ends_the_command(tmp_path, fake, stream, read_some):
    path, _ = stream
    pid = tmp_path / "pid"
    fake(f"echo $$ > {pid}; head -c 20000 {path}; exec sleep 600")
    reader = jitgraft.read("x")
    if read_some:
        reader.read_next_batch()
    assert os.path.exists(f"/proc/{pid.read_text().strip()}")
    del reader
    gc.collect()
    for _ in range(100):
        if not os.path.exists(f"/proc/{pid.read_text().strip()}"):
            return
        time.sleep(0.05)
    pytest.fail("the command still runs")


@pytest.mark.parametrize("close", ["close", "with"])
def test_a_reader_that_is_closed_ends_the_command_at_once(tmp_path, fake, stream, close):
    path, _ = stream
    pid = tmp_path / "pid"
    fake(f"echo $$ > {pid}; head -c 20000 {path}; exec sleep 600")
    reader = jitgraft.read("x")
    if close == "close":
        reader.read_next_batch()
        reader.close()
    else:
        with reader:
            assert reader.schema.names == ["weight"]
    assert not os.path.exists(f"/proc/{pid.read_text().strip()}")
    assert list(reader) == []
    reader.close()


def test_all_that_a_reader_can_do_is_done(fake, stream):
    path, _ = stream
    fake(f"cat {path}")
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
