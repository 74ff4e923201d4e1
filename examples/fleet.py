"""The recordings of a fleet, each with its dumps beside it, become one data set that any engine asks.

    pip install 'jitgraft[arrow]' 'pyspark[sql]'   # on the driver and on every worker
    spark-submit --master spark://HOST:7077 examples/fleet.py s3://profiles/ s3a://tables/fleet docs/sql.md

The first is a directory that all machines see, or the address of one in an object store, as pyarrow.fs knows it. The
second gets table=samples/host=…/day=…/*.parquet, in the columns of docs/sql.md, and table=errors: a row for each recording
that could not be read to its end, has no samples, or of which something was skipped. The questions of the third, a
document with blocks of SQL, are asked of the table `samples`. A recording is known by the hash of its bytes and read
once: another run adds what is new, and changes no file.
"""

import fnmatch, hashlib, os, re, sys, tempfile, warnings  # noqa: E401
import jitgraft, pyarrow, pyarrow.fs  # noqa: E401
from pyspark.sql import SparkSession, functions
from pyspark.sql.pandas.types import from_arrow_schema

SOURCE, DATASET, *QUESTIONS = sys.argv[1:]
RECORDINGS = ("perf.data", "perf.data.*", "*.perf.data", "data", "*.pb.gz", "*.folded")  # all else is a dump, a map …
TASK = 64 << 20  # bytes that a task reads, if its recordings are small: each task writes a file for each host and day


def fetched(path, scratch):
    """The recording on this machine; from elsewhere its directory is copied, for the dumps in it."""
    path = path.removesuffix("/data")  # a recording's directory
    files, _ = pyarrow.fs.FileSystem.from_uri(SOURCE)
    if files.type_name == "local":
        return path
    pyarrow.fs.copy_files(os.path.dirname(path), scratch, source_filesystem=files)
    return os.path.join(scratch, os.path.basename(path))


def digest(path):
    """The hash of a recording's bytes, as column `input` has it."""
    files, _ = pyarrow.fs.FileSystem.from_uri(SOURCE)
    sha1 = hashlib.sha1()
    with files.open_input_stream(path, compression=None) as stream:
        while piece := stream.read(1 << 20):
            sha1.update(piece)
    return sha1.hexdigest()


def plain(kind):
    """Spark takes no dictionaries from Python."""
    if pyarrow.types.is_list(kind):
        return pyarrow.list_(pyarrow.field("element", plain(kind.value_type)))
    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def table():
    """The columns of samples, and those of errors."""
    with tempfile.NamedTemporaryFile(suffix=".folded") as one:
        one.write(b"f;g 1\n"), one.flush()  # noqa: B018
        columns = [(field.name, plain(field.type)) for field in jitgraft.read(one.name).schema]
    return pyarrow.schema(columns + [("path", pyarrow.string()), ("error", pyarrow.string())])


def batch(schema, told):
    """The rows of a batch, or one row of single values; what is not told is null."""
    rows = max([len(column) for column in told.values() if isinstance(column, pyarrow.Array)], default=1)
    arrays = []
    for field in schema:
        column = told.get(field.name)
        column = column if isinstance(column, pyarrow.Array) else pyarrow.array([column] * rows, field.type)
        arrays.append(column.cast(field.type))
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def read(schema):
    """Recordings → rows, on a worker. Nothing that is wrong with a recording fails the job."""

    def each(path, input):
        rows, said = 0, []
        with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings(record=True) as survived:
            warnings.simplefilter("always", jitgraft.JitgraftWarning)
            try:
                for part in jitgraft.read(fetched(path, scratch)):
                    rows += part.num_rows
                    yield batch(schema, {**dict(zip(part.schema.names, part.columns)), "input": input, "path": path})
            except jitgraft.Error as error:
                said = [str(error)]
            said += [str(warning.message) for warning in survived]
        for error in said or [] if rows else said or ["no samples"]:
            yield batch(schema, {"input": input, "path": path, "error": error})

    def all_of(batches):
        for recordings in batches:
            for recording in recordings.to_pylist():
                yield from each(recording["path"], recording["input"])

    return all_of


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


def main():
    spark = SparkSession.builder.appName("jitgraft fleet").config("spark.sql.session.timeZone", "UTC")
    spark = spark.config("spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    # Otherwise Spark sorts all rows of a task by host and day, on disk, before it writes the first.
    spark = spark.config("spark.sql.maxConcurrentOutputFileWriters", 64)
    spark = spark.config("spark.sql.parquet.compression.codec", "zstd").getOrCreate()
    files, root = pyarrow.fs.FileSystem.from_uri(SOURCE)
    found = files.get_file_info(pyarrow.fs.FileSelector(root, recursive=True))
    is_one = lambda info: info.is_file and any(fnmatch.fnmatch(info.path, f"*/{name}") for name in RECORDINGS)  # noqa: E731
    found = [(info.path, info.size) for info in found if is_one(info)]
    slices = max(1, min(len(found), 4 * spark.sparkContext.defaultParallelism))
    hashed = spark.sparkContext.parallelize(found, slices).map(lambda info: (*info, digest(info[0]))).collect()
    try:
        known = {row.input for row in spark.read.parquet(DATASET).select("input").distinct().collect()}
    except Exception as nothing:  # what Spark raises where there is no data set yet
        known = set() if "PATH_NOT_FOUND" in str(nothing) else sys.exit(str(nothing))
    new = {input: (path, size, input) for path, size, input in sorted(hashed) if input not in known}
    print(f"{len(found)} recordings, {len(new)} of them new", flush=True)
    if new:
        groups, schema = list(tasks(new.values(), spark.sparkContext.defaultParallelism)), table()
        inputs = spark.sparkContext.parallelize(groups, len(groups)).flatMap(list)
        rows = spark.createDataFrame(inputs, "path string, input string").mapInArrow(read(schema), from_arrow_schema(schema))
        rows = rows.withColumn("table", functions.expr("if(error is null, 'samples', 'errors')"))
        rows.write.mode("append").partitionBy("table", "host", "day").parquet(DATASET)
    spark.read.option("basePath", DATASET).parquet(DATASET).createOrReplaceTempView("fleet")
    spark.sql("select path, error from fleet where table = 'errors' order by path").show(50, truncate=100)
    spark.sql("create or replace temp view samples as select * from fleet where table = 'samples'")
    for document in QUESTIONS:
        for question in re.findall(r"```sql(?! duckdb| spark)[^\n]*\n(.*?)```", open(document).read(), re.S):
            spark.sql(question.rstrip().rstrip(";")).show(truncate=80)


if __name__ == "__main__":
    main()
