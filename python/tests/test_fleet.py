"""examples/fleet.py, on Spark: every recording is in the data set or told as an error, once."""

import gzip
import hashlib
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.fs
import pytest

import jitgraft

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "fixtures" / "php-recording"


def fleet(source, dataset, *questions):
    """What the job prints."""
    submit = Path(sys.executable).parent / "spark-submit"
    words = [submit, "--master", "local[2]", ROOT / "examples" / "fleet.py", source, dataset, *questions]
    path = os.pathsep.join([str(Path(jitgraft.command()).parent), os.environ["PATH"]])
    module = str(Path(jitgraft.__file__).parents[1])
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": module, "PATH": path}
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def hashes(dataset):
    files = (path for path in dataset.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def asked(dataset, question):
    options = "hive_partitioning=true, union_by_name=true"
    samples = f"read_parquet('{dataset}/samples/**/*.parquet', {options})"
    return duckdb.sql(question.format(samples=samples)).fetchall()


@pytest.fixture
def recordings(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(RECORDING, source / "php")
    (source / "stacks").mkdir()
    (source / "stacks" / "a.folded").write_text("main;f 3\nmain;g 4\n")
    (source / "stacks" / "the same.folded.gz").write_bytes(gzip.compress(b"main;f 3\nmain;g 4\n"))
    (source / "cut").mkdir()
    (source / "cut" / "perf.data").write_bytes(b"PERFILE2" + bytes(range(90)))
    return source


def test_all_recordings_are_in_the_data_set_once(tmp_path, recordings):
    dataset, questions = tmp_path / "dataset", tmp_path / "questions.md"
    questions.write_text("```sql\nselect 'weight', sum(weight) from samples where leaf = 'g';\n```\n")
    told = fleet(recordings, dataset, questions)
    assert "4 recordings, 4 of them new" in told and "cut/perf.data: " in told
    of = lambda path: hashlib.sha1(path.read_bytes()).hexdigest()  # noqa: E731
    total = "select sum(weight)::bigint, sum(count)::bigint from {samples} where input = '%s'"
    assert asked(dataset, total % of(recordings / "stacks" / "a.folded")) == [(7, 7)]
    weight = sum(
        int(line.rsplit(" ", 1)[1])
        for line in subprocess.run(
            [jitgraft.command(), "collapse", "-q", str(RECORDING / "perf.data.zst")], capture_output=True, text=True
        ).stdout.splitlines()
    )
    ((input,),) = asked(dataset, "select distinct input from {samples} where command is not null")
    assert asked(dataset, total % input)[0][0] == weight > 0
    assert len(list(dataset.glob("samples/*/*/*.parquet"))) == 2, "recordings of the same bytes are one"
    assert not list(dataset.glob("_under_way/*")), "files under way must not stay in the data set"

    before = hashes(dataset)
    told = fleet(recordings, dataset, questions)
    assert "4 recordings, 1 of them new" in told and "0 read, 0 rows, 1 not read" in told and "|weight|" in told
    assert {name: hash for name, hash in hashes(dataset).items() if "_done" not in name} == {
        name: hash for name, hash in before.items() if "_done" not in name
    }
    (recordings / "stacks" / "b.folded").write_text("main;f 1\n")
    (recordings / "cut" / "perf.data").unlink()
    assert "4 recordings, 1 of them new" in fleet(recordings, dataset)
    assert before.items() < hashes(dataset).items()


def test_from_an_object_store_a_recording_comes_with_its_own_dumps_only(tmp_path, monkeypatch):
    source, scratch = tmp_path / "bucket", tmp_path / "scratch"
    source.mkdir(), scratch.mkdir()
    (source / "perf.data").write_bytes(pyarrow.input_stream(str(RECORDING / "perf.data.zst")).read())
    (source / "empty.data").touch()
    for name in ("jit-31795.dump", "perf-31796.map", "jit-99999.dump"):
        shutil.copy(RECORDING / "jit-31795.dump", source / name)
    monkeypatch.setattr(sys, "argv", ["fleet.py", "bucket", "dataset"])
    fleet = runpy.run_path(str(ROOT / "examples" / "fleet.py"))
    bucket = pyarrow.fs.SubTreeFileSystem(str(source), pyarrow.fs.LocalFileSystem())
    fetched = fleet["fetched"]
    monkeypatch.setitem(fetched.__globals__, "place", lambda uri: (bucket, ""))
    beside = ["jit-31795.dump", "perf-31796.map", "jit-99999.dump"]
    for name, expected in {"perf.data": {"perf.data", "jit-31795.dump"}, "empty.data": {"empty.data"}}.items():
        (scratch / name).mkdir()
        path = Path(fetched(name, beside, scratch / name))
        assert path.name == name and {file.name for file in path.parent.iterdir()} == expected


def test_a_job_that_ended_on_its_way_is_taken_up_again(tmp_path, recordings):
    """What no list has is read again, and the same files come out."""
    dataset = tmp_path / "dataset"
    fleet(recordings, dataset)
    whole = hashes(dataset / "samples")
    for lost in [*dataset.glob("samples/*/*/*")][:1] + [*dataset.glob("_done/*")]:
        lost.unlink()
    (dataset / "_under_way" / "another job").mkdir(parents=True)
    (dataset / "_under_way" / "another job" / "half").write_text("PAR1")
    assert "4 recordings, 4 of them new" in fleet(recordings, dataset)
    assert hashes(dataset / "samples") == whole
