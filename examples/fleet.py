"""The recordings of a fleet, each with its dumps beside it, become one data set that any engine can query.

    pip install 'jitgraft[arrow]' 'pyspark[sql]'   # on the driver and on every worker
    spark-submit --master spark://HOST:7077 examples/fleet.py s3://profiles/ s3a://tables/fleet docs/sql.md

The first is a directory that all machines see, or the address of one in an object store, as pyarrow.fs accepts it. The
second becomes a data set as `jitgraft export --partition` makes it: samples, their distinct stacks, and a table
`recordings` with a row for each file, with the reason why one could not be read. The questions of the third, a document with
blocks of SQL, are run on these tables. A file is recognized by its path, size and time, and not fetched twice: another
run adds what is new or changed, tries again what could not be read, and leaves all else as it is.

Rows do not pass through Spark, which would take them apart value by value, and write them without the order and the
filters that let engines skip most of a file: the command writes the files, Spark assigns and repeats the work.
"""

import collections, fnmatch, glob, hashlib, mmap, os, re, struct, sys, tempfile, uuid, warnings  # noqa: E401
import jitgraft, pyarrow, pyarrow.dataset, pyarrow.fs, pyarrow.parquet  # noqa: E401
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


def changed(file, **values):
    """The entry of a recording with some of its values changed."""
    table = pyarrow.parquet.read_table(file)
    for name, value in values.items():
        at = table.schema.get_field_index(name)
        field = table.schema.field(at)
        table = table.set_column(at, field, pyarrow.array([value] * len(table), field.type))
    pyarrow.parquet.write_table(table, file, compression="none", use_dictionary=False)
    return table


def each(found, job, compacted, beside, scratch):
    """A recording → its files. Nothing that is wrong with it fails the job."""
    path, output = found["path"], os.path.join(scratch, "set")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jitgraft.JitgraftWarning)
        try:
            files = beside.get(os.path.dirname(path), [])
            jitgraft.write(fetched(path, files, scratch), output, partition=True, threads=TaskContext.get().cpus())
        except (jitgraft.Error, ValueError, OSError) as error:
            said = str(error)
    written = lambda table: glob.glob(f"{table}/**/*.parquet", root_dir=output, recursive=True)  # noqa: E731
    tables = {table: written(table) for table in ("samples", "stacks", "recordings")}
    if not tables["recordings"]:  # not even copied: the next run tries again
        return {"path": path, "rows": 0, "error": said}
    # The command's entry says where its copy was; the data set's says where the recording is.
    own = os.path.join(output, tables["recordings"][0])
    error = pyarrow.parquet.read_table(own, columns=["error"])["error"][0].as_py()
    error = error and error.replace(f"{scratch}/source/", f"{os.path.dirname(path)}/")
    row = changed(own, path=path, size=found["size"], mtime_ns=found["mtime"], error=error)
    has_rows = row["input"][0].as_py() in compacted  # in a file of another name
    for name in [] if has_rows else tables["samples"] + tables["stacks"]:
        put(os.path.join(output, name), name, job)
    # As the command names entries: by the recording and the start of its path's hash, or by that hash alone.
    of_path = hashlib.sha1(path.encode()).hexdigest()
    key = re.sub(r"[0-9a-f]+\.parquet$", "", os.path.basename(tables["recordings"][0]))
    name, unread = f"{key}{of_path[:16]}.parquet", f"unread-{of_path}.parquet"
    put(own, f"recordings/{unread if key == 'unread-' else name}", job)
    files, root = place(DATASET)
    if key != "unread-" and files.get_file_info(f"{root}/recordings/{unread}").is_file:
        files.delete_file(f"{root}/recordings/{unread}")
    return {"path": path, "rows": row["rows"][0].as_py(), "error": row["error"][0].as_py()}


def reader(job, compacted, beside):
    def read(batches):
        """Recordings → files, on a worker."""
        for recordings in batches:
            for recording in recordings.to_pylist():
                with tempfile.TemporaryDirectory() as scratch:
                    schema = pyarrow.schema({"path": pyarrow.string(), "rows": pyarrow.int64(), "error": pyarrow.string()})
                    yield pyarrow.RecordBatch.from_pylist([each(recording, job, compacted, beside, scratch)], schema)

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


def entries():
    """Those of recordings that were read."""
    files, root = place(DATASET)
    if files.get_file_info(f"{root}/recordings").type == pyarrow.fs.FileType.NotFound:
        return []
    table = pyarrow.dataset.dataset(f"{root}/recordings", filesystem=files)
    names = ["path", "size", "mtime_ns", "input", "bucket_ns", "rows", "__filename"]
    return table.to_table(columns=names, filter=pyarrow.dataset.field("error").is_null()).to_pylist()


def is_compacted(entry):
    """True if `export --compact` made its file."""
    return os.path.basename(entry["__filename"]).startswith("compact-")


def settle(entries, paths, job):
    """Of files with the same bytes one has rows, as for the command: the first, or one that is compacted already."""
    files, _ = place(DATASET)
    having, first = [entry for entry in entries if entry["rows"] and (is_compacted(entry) or entry["path"] in paths)], {}
    for entry in sorted(having, key=lambda entry: (not is_compacted(entry), entry["path"])):
        if first.setdefault((entry["input"], entry["bucket_ns"]), entry) is entry or is_compacted(entry):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            copy = os.path.join(scratch, os.path.basename(entry["__filename"]))
            pyarrow.fs.copy_files(entry["__filename"], copy, files, pyarrow.fs.LocalFileSystem())
            names = set(pyarrow.parquet.read_schema(copy).names) - {"input", "path", "size", "mtime_ns", "bucket_ns"}
            changed(copy, **{**dict.fromkeys(names), "rows": 0, "samples": 0, "lost": 0})
            put(copy, f"recordings/{os.path.basename(copy)}", job)


def main():
    spark = SparkSession.builder.appName("jitgraft fleet").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    (all, beside), job, read = recordings(), str(uuid.uuid4()), entries()
    new = all - {(entry["path"], entry["size"], entry["mtime_ns"]) for entry in read}
    compacted, workers = {entry["input"] for entry in read if is_compacted(entry)}, spark.sparkContext.defaultParallelism
    print(f"{len(all)} recordings, {len(new)} of them new", flush=True)
    if new:
        groups = list(tasks(new, workers))
        inputs = spark.sparkContext.parallelize(groups, len(groups)).flatMap(list)
        done = spark.createDataFrame(inputs, FOUND).mapInArrow(reader(job, compacted, beside), READ).collect()
        unread = [row for row in done if row.error is not None]
        print(f"{len(done) - len(unread)} read, {sum(row.rows for row in done)} rows, {len(unread)} not read", flush=True)
        for row in sorted(unread, key=lambda row: row.path):
            print(f"{row.path}: {row.error}")
    settle(entries() if new else read, {path for path, _, _ in all}, job)
    files, root = place(DATASET)
    if files.get_file_info(f"{root}/_under_way/{job}").type == pyarrow.fs.FileType.Directory:
        files.delete_dir(f"{root}/_under_way/{job}")
    for table in ("samples", "stacks", "recordings") if QUESTIONS else ():
        spark.read.option("mergeSchema", True).parquet(f"{DATASET}/{table}").createOrReplaceTempView(table)
    for document in QUESTIONS:
        for question in re.findall(r"```sql(?! duckdb| spark)[^\n]*\n(.*?)```", open(document).read(), re.S):
            spark.sql(question.rstrip().rstrip(";")).show(truncate=80)


if __name__ == "__main__":
    main()
