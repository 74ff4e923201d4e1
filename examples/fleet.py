"""The recordings of a fleet, each with its dumps beside it, become one data set that any engine asks.

    pip install 'jitgraft[arrow]' 'pyspark[sql]'   # on the driver and on every worker
    spark-submit --master spark://HOST:7077 examples/fleet.py s3://profiles/ s3a://tables/fleet docs/sql.md

The first is a directory that all machines see, or the address of one in an object store, as pyarrow.fs knows it. The
second gets samples/host=…/day=…/HASH.parquet, a file for each recording, in the columns of docs/sql.md; and
errors/level=…/HASH.parquet: a row for each thing that was wrong with a recording. One of level `error` is not among the
samples: it cannot be read, or has none. The questions of the third, a document with blocks of SQL, are asked of the
table `samples`. A recording is known by the hash of its bytes and read once: another run adds what is new, and changes
no file. To have an unreadable one tried again, remove its file from errors.

Rows do not pass through Spark, which would take them apart value by value, and write them without the order and the
filters that let engines skip most of a file: the command writes the files, Spark says who reads what, and tries again.
"""

import fnmatch, glob, hashlib, os, re, sys, tempfile, uuid, warnings  # noqa: E401
import jitgraft, pyarrow, pyarrow.fs, pyarrow.parquet  # noqa: E401
from pyspark import TaskContext
from pyspark.sql import SparkSession

SOURCE, DATASET, *QUESTIONS = sys.argv[1:]
RECORDINGS = ("perf.data", "perf.data.*", "*.perf.data", "data", "*.pb.gz", "*.folded")  # all else is a dump, a map …
TASK = 64 << 20  # bytes that a task reads, if its recordings are small
READ = "input string, path string, rows long, errors long"


def place(uri):
    """A file system, and where in it."""
    return pyarrow.fs.FileSystem.from_uri(re.sub("^s3a:", "s3:", uri) if "://" in uri else os.path.abspath(uri))


def fetched(path, scratch):
    """The recording on this machine; from elsewhere its directory is copied, for the dumps in it."""
    files, _ = place(SOURCE)
    if files.type_name != "local":
        pyarrow.fs.copy_files(os.path.dirname(path), f"{scratch}/source", source_filesystem=files)
        path = f"{scratch}/source/{os.path.basename(path)}"
    return path.removesuffix("/data")  # a recording's directory


def digest(path):
    """The hash of a recording's bytes, as column `input` has it."""
    files, _ = place(SOURCE)
    beside = files.get_file_info(pyarrow.fs.FileSelector(os.path.dirname(path))) if path.endswith("/data") else []
    streams = [info.path for info in beside if re.search(r"/data\.\d+$", info.path)]
    sha1 = hashlib.sha1()
    for part in [path, *sorted(streams, key=lambda path: int(path.rsplit(".", 1)[1]))]:
        with files.open_input_stream(part, compression=None) as stream:
            while piece := stream.read(1 << 20):
                sha1.update(piece)
    return sha1.hexdigest()


def put(file, name):
    """Into the data set, whole or not at all. Who is told to do it again puts the same in the same place."""
    files, root = place(DATASET)
    under_way = f"{root}/_under_way/{uuid.uuid4()}"
    for directory in (os.path.dirname(under_way), os.path.dirname(f"{root}/{name}")):
        files.create_dir(directory)
    pyarrow.fs.copy_files(file, under_way, source_filesystem=pyarrow.fs.LocalFileSystem(), destination_filesystem=files)
    files.move(under_way, f"{root}/{name}")


def each(path, input, scratch):
    """A recording → its file. Nothing that is wrong with it fails the job."""
    rows, said = 0, []
    with warnings.catch_warnings(record=True) as survived:
        warnings.simplefilter("always", jitgraft.JitgraftWarning)
        try:
            jitgraft.write(fetched(path, scratch), f"{scratch}/samples", partition=True, threads=TaskContext.get().cpus())
        except jitgraft.Error as error:
            said = [str(error)]
    said += [str(warning.message) for warning in survived]
    written = [name for name in glob.glob("samples/*/*/*.parquet", root_dir=scratch)]
    rows = sum(pyarrow.parquet.read_metadata(f"{scratch}/{name}").num_rows for name in written)
    said = said or ([] if rows else ["no samples"])
    if said:  # before the samples: where those are, all is told
        table = pyarrow.table({"input": [input] * len(said), "path": [path] * len(said), "error": said})
        pyarrow.parquet.write_table(table, f"{scratch}/errors.parquet", compression="zstd")
        put(f"{scratch}/errors.parquet", f"errors/level={'warning' if rows else 'error'}/{input}.parquet")
    for name in written if rows else []:
        put(f"{scratch}/{name}", f"{os.path.dirname(name)}/{input}.parquet")
    return {"input": input, "path": path, "rows": rows, "errors": len(said)}


def read(batches):
    """Recordings → files, on a worker."""
    for recordings in batches:
        for recording in recordings.to_pylist():
            with tempfile.TemporaryDirectory() as scratch:
                yield pyarrow.RecordBatch.from_pylist([each(recording["path"], recording["input"], scratch)])


def tasks(recordings, workers):
    """The largest first, each by itself: while one is read, the others go on. Small ones share a task."""
    together, size, enough = [], 0, min(TASK, sum(size for _, size, _ in recordings) // (4 * workers))
    for path, bytes, input in sorted(recordings, key=lambda recording: -recording[1]):
        together.append((path, input))
        size += bytes
        if size >= enough:
            yield together
            together, size = [], 0
    if together:
        yield together


def found(uri, *names):
    """The files of these names below a place: path and size."""
    files, root = place(uri)
    below = files.get_file_info(pyarrow.fs.FileSelector(root, recursive=True, allow_not_found=True))
    is_one = lambda path: any(fnmatch.fnmatch(path, f"*/{name}") for name in names)  # noqa: E731
    return [(info.path, info.size) for info in below if info.is_file and is_one(info.path)]


def main():
    spark = SparkSession.builder.appName("jitgraft fleet").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    recordings, workers = found(SOURCE, *RECORDINGS), spark.sparkContext.defaultParallelism
    slices = max(1, min(len(recordings), 4 * workers))
    hashed = spark.sparkContext.parallelize(recordings, slices).map(lambda info: (*info, digest(info[0]))).collect()
    known = found(DATASET, "samples/*.parquet", "errors/level=error/*.parquet")
    known = {os.path.basename(path).removesuffix(".parquet") for path, _ in known}
    new = {input: (path, size, input) for path, size, input in sorted(hashed) if input not in known}
    print(f"{len(recordings)} recordings, {len(new)} of them new", flush=True)
    if new:
        groups = list(tasks(new.values(), workers))
        inputs = spark.sparkContext.parallelize(groups, len(groups)).flatMap(list)
        done = spark.createDataFrame(inputs, "path string, input string").mapInArrow(read, READ)
        done.selectExpr("count(*) as read", "sum(rows) as rows", "count_if(rows = 0) as without_samples").show()
        files, root = place(DATASET)
        files.delete_dir(f"{root}/_under_way")
    if found(DATASET, "errors/*.parquet"):
        errors = spark.read.parquet(f"{DATASET}/errors").select("level", "path", "error")
        errors.orderBy("level", "path", "error").show(50, truncate=100)
    if QUESTIONS:
        spark.read.parquet(f"{DATASET}/samples").createOrReplaceTempView("samples")
    for document in QUESTIONS:
        for question in re.findall(r"```sql(?! duckdb| spark)[^\n]*\n(.*?)```", open(document).read(), re.S):
            spark.sql(question.rstrip().rstrip(";")).show(truncate=80)


if __name__ == "__main__":
    main()
