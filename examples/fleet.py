"""The recordings of a fleet, each with its dumps beside it, become one data set that any engine can query.

    pip install 'jitgraft[arrow]' 'pyspark[sql]'   # on the driver and on every worker
    spark-submit --master spark://HOST:7077 examples/fleet.py s3://profiles/ s3a://tables/fleet docs/sql.md

The first is a directory that all machines see, or the address of one in an object store, as pyarrow.fs accepts it. The
second becomes a data set as `jitgraft export --partition` makes it: a file of samples for each recording. The questions of
the third, a document with blocks of SQL, are run on the view `profile`: the samples of the event that has most. A file is
recognized by its path, size and time, which the job lists below `_done`, and not fetched twice: another run adds what is new
or changed, tries again what could not be read, and leaves all else as it is.

Rows do not pass through Spark, which would take them apart value by value, and write them without the order and the
filters that let engines skip most of a file: the command writes the files, Spark assigns and repeats the work.
"""

import collections, fnmatch, glob, json, mmap, os, re, struct, sys, tempfile, uuid, warnings  # noqa: E401
import jitgraft, pyarrow, pyarrow.fs, pyarrow.parquet  # noqa: E401
from pyspark import TaskContext
from pyspark.sql import SparkSession

SOURCE, DATASET, *QUESTIONS = sys.argv[1:]
PACKED = ("", ".gz", ".zst")
NAMES = ("data", "*.data", "perf.data.*", "*.pb", "*.pprof", "*.folded", "*.otlp", "*.otlp.json", "*.tar")
RECORDINGS = tuple(name + packed for name in NAMES for packed in PACKED)
BESIDE = ("jit-*.dump", "perf-*.map", "*.log", "luajit*.dump", "jdump.*", "data.*")  # sources of names, and parts of recordings
TASK = 64 << 20  # bytes that a task reads, if its recordings are small
FOUND = "path string, size long, mtime long"
READ = "path string, rows long, error string"


def place(uri):
    """A file system, and where in it."""
    return pyarrow.fs.FileSystem.from_uri(re.sub("^s3a:", "s3:", uri) if "://" in uri else os.path.abspath(uri))


def is_any(path, names):
    return any(fnmatch.fnmatch(os.path.basename(path), name) for name in names)


def names_code_of(path, recording):
    """True if a file beside a recording may be of it: the recording has its name, or its process's number."""
    number = re.search(r"-(\d+)\.(dump|map)$", path)
    if number is None or recording[:8] not in (b"PERFILE2", b"2ELIFREP"):
        return True
    order = "<" if recording[:8] == b"PERFILE2" else ">"
    return os.path.basename(path).encode() in recording or struct.pack(f"{order}I", int(number[1])) in recording


class Bytes(mmap.mmap):
    def __contains__(self, part):
        return self.find(part) >= 0


def fetched(path, beside, scratch):
    """The recording on this machine; from elsewhere it is copied, and those of the files beside it that are of it."""
    files, _ = place(SOURCE)
    if files.type_name != "local":
        directory, here = os.path.join(scratch, "source"), pyarrow.fs.LocalFileSystem()
        os.mkdir(directory)
        fetch = lambda path: pyarrow.fs.copy_files(path, f"{directory}/{os.path.basename(path)}", files, here)  # noqa: E731
        fetch(path)
        path = os.path.join(directory, os.path.basename(path))
        if os.path.getsize(path) > 0 and ".tar" not in path:  # `jitgraft pack` puts the dumps into it
            with open(path, "rb") as file, Bytes(file.fileno(), 0, access=mmap.ACCESS_READ) as recording:
                names_it = [other for other in beside if names_code_of(other, recording)]
            for other in names_it:
                if os.path.basename(other) != os.path.basename(path):
                    fetch(other)
    return path.removesuffix("/data")  # a recording's directory


def put(file, name, job):
    """Into the data set, whole or not at all. Who is told to do it again puts the same in the same place."""
    files, root = place(DATASET)
    under_way = f"{root}/_under_way/{job}/{uuid.uuid4()}"
    for directory in (os.path.dirname(under_way), os.path.dirname(f"{root}/{name}")):
        files.create_dir(directory)
    pyarrow.fs.copy_files(file, under_way, source_filesystem=pyarrow.fs.LocalFileSystem(), destination_filesystem=files)
    files.move(under_way, f"{root}/{name}")


def each(found, job, beside, scratch):
    """A recording → its files. Nothing that is wrong with it fails the job."""
    path, output = found["path"], os.path.join(scratch, "set")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jitgraft.JitgraftWarning)
        try:
            files = beside.get(os.path.dirname(path), [])
            jitgraft.write(fetched(path, files, scratch), output, partition=True, threads=TaskContext.get().cpus())
        except (jitgraft.Error, ValueError, OSError) as error:
            # The command was told where a copy is.
            said = str(error).replace(f"{scratch}/source/", f"{os.path.dirname(path)}/")
            return {"path": path, "rows": 0, "error": said}
    rows = 0
    for name in glob.glob("samples/**/*.parquet", root_dir=output, recursive=True):
        file = os.path.join(output, name)
        rows += pyarrow.parquet.read_metadata(file).num_rows
        put(file, name, job)
    return {"path": path, "rows": rows, "error": None}


def reader(job, beside):
    def read(batches):
        """Recordings → files, on a worker."""
        for recordings in batches:
            for recording in recordings.to_pylist():
                with tempfile.TemporaryDirectory() as scratch:
                    schema = pyarrow.schema({"path": pyarrow.string(), "rows": pyarrow.int64(), "error": pyarrow.string()})
                    yield pyarrow.RecordBatch.from_pylist([each(recording, job, beside, scratch)], schema)

    return read


def tasks(recordings, workers):
    """The largest first, each by itself: while one is read, the others go on. Small ones share a task."""
    together, size, enough = [], 0, min(TASK, sum(size for _, size, _ in recordings) // (4 * workers))
    for recording in sorted(recordings, key=lambda recording: -recording[1]):
        together.append(recording)
        size += recording[1]
        if size >= enough:
            yield together
            together, size = [], 0
    if together:
        yield together


def recordings():
    """Those of the source: path, size and time; and by directory the files that may be of them."""
    files, root = place(SOURCE)
    below = [info for info in files.get_file_info(pyarrow.fs.FileSelector(root, recursive=True)) if info.is_file]
    beside = collections.defaultdict(list)
    for info in below:
        if is_any(info.path, BESIDE):
            beside[os.path.dirname(info.path)].append(info.path)
    return {(info.path, info.size, info.mtime_ns or 0) for info in below if is_any(info.path, RECORDINGS)}, beside


def done_before():
    """The recordings that earlier runs have read: path, size and time."""
    files, root = place(DATASET)
    lists = pyarrow.fs.FileSelector(f"{root}/_done", allow_not_found=True)
    texts = [files.open_input_stream(info.path).read().decode() for info in files.get_file_info(lists)]
    return {tuple(json.loads(line)) for text in texts for line in text.splitlines()}


def remember(recordings, job):
    """Lists recordings that were read."""
    with tempfile.TemporaryDirectory() as scratch:
        file = os.path.join(scratch, job)
        with open(file, "w") as out:
            out.writelines(json.dumps(recording) + "\n" for recording in sorted(recordings))
        put(file, f"_done/{job}", job)


def main():
    spark = SparkSession.builder.appName("jitgraft fleet").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    (all, beside), job = recordings(), str(uuid.uuid4())
    new, workers = all - done_before(), spark.sparkContext.defaultParallelism
    print(f"{len(all)} recordings, {len(new)} of them new", flush=True)
    if new:
        groups = list(tasks(new, workers))
        inputs = spark.sparkContext.parallelize(groups, len(groups)).flatMap(list)
        done = spark.createDataFrame(inputs, FOUND).mapInArrow(reader(job, beside), READ).collect()
        unread = {row.path: row.error for row in done if row.error is not None}
        print(f"{len(done) - len(unread)} read, {sum(row.rows for row in done)} rows, {len(unread)} not read", flush=True)
        for path, error in sorted(unread.items()):
            print(f"{path}: {error}")
        remember([recording for recording in new if recording[0] not in unread], job)
    files, root = place(DATASET)
    if files.get_file_info(f"{root}/_under_way/{job}").type == pyarrow.fs.FileType.Directory:
        files.delete_dir(f"{root}/_under_way/{job}")
    if QUESTIONS:
        spark.read.option("mergeSchema", True).parquet(f"{DATASET}/samples").createOrReplaceTempView("samples")
    for document in QUESTIONS:
        text = open(document).read()
        for views in re.findall(r"```sql spark\n(CREATE TEMPORARY VIEW profile.*?)```", text, re.S):
            spark.sql(views.rstrip().rstrip(";"))
        for question in re.findall(r"```sql(?! duckdb| spark)[^\n]*\n(.*?)```", text, re.S):
            spark.sql(question.rstrip().rstrip(";")).show(truncate=80)


if __name__ == "__main__":
    main()
