//! Profiles as tables: what is in the files that `export` writes for engines, and what the program makes of them again.
#![cfg(feature = "tables")]

use crate::support;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, LargeListArray, ListArray, ListViewArray, RecordBatch, StringArray};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::reader::StreamReader;
use arrow_schema::Field;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use serde_json::Value;
use sha1::{Digest, Sha1};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use support::bytes::Order;
use support::perf_data::{Event, Mmap, Mode, PerfData, Stamp};

fn jitgraft(args: &[&str], inputs: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).args(inputs).output().unwrap()
}

/// Its output; it must succeed.
fn stdout(args: &[&str], inputs: &[&Path]) -> Vec<u8> {
    let output = jitgraft(args, inputs);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Its messages on standard error; it must fail.
fn refused(args: &[&str], inputs: &[&Path]) -> String {
    let output = jitgraft(args, inputs);
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// The recording of a language's runtime with all tiers.
fn tiers() -> PathBuf {
    fixture("tiers-recording/perf.data.zst")
}

fn batches(stream: &[u8]) -> Vec<RecordBatch> {
    StreamReader::try_new(stream, None).unwrap().map(Result::unwrap).collect()
}

/// The texts of a column of all batches.
fn texts(batches: &[RecordBatch], name: &str) -> Vec<Option<String>> {
    let mut all = Vec::new();
    for batch in batches {
        let column = batch.column_by_name(name).unwrap();
        let values = column.as_any_dictionary();
        let keys = values.normalized_keys();
        let texts: &StringArray = values.values().as_string();
        let text = |at: usize| values.keys().is_valid(at).then(|| texts.value(keys[at]).to_owned());
        all.extend((0..column.len()).map(text));
    }
    all
}

fn numbers(batches: &[RecordBatch], name: &str) -> Vec<Option<i64>> {
    let column = |batch: &RecordBatch| batch.column_by_name(name).unwrap().clone();
    batches.iter().flat_map(|batch| column(batch).as_primitive::<Int64Type>().iter().collect::<Vec<_>>()).collect()
}

/// All files below a directory.
fn files_below(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => folders.push(entry),
                false => _ = files.insert(entry.strip_prefix(root).unwrap().to_owned(), fs::read(&entry).unwrap()),
            }
        }
    }
    files
}

/// All rows of a file, as texts.
fn rows_of(table: &Path) -> Vec<String> {
    let file = SerializedFileReader::new(File::open(table).unwrap()).unwrap();
    let rows = file.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().to_string()).collect()
}

/// Samples of two events in two threads: this many of the first, a few of the second.
fn recorded(dir: &Path, samples: u64) -> PathBuf {
    let mut recording = PerfData::new(Order::Little, Event::usual());
    recording.comm(Stamp::new(77, 1), "program", true);
    recording.mmap2(Stamp::new(77, 2), Mmap { addr: 0x1_0000, len: 0x10_0000, pgoff: 0, path: "//anon" });
    let map: String = (0..200).map(|at| format!("{:x} 100 work{at}\n", 0x1_0000 + 0x100 * at)).collect();
    fs::write(dir.join("perf-77.map"), map).unwrap();
    for sample in 0..samples {
        recording.sample(Stamp::new(77, 10 + sample), &[0x1_0000 + 0x100 * (sample * 7919 % 200) + 4, 0x1_0004]);
    }
    let path = dir.join("perf.data");
    fs::write(&path, recording.into_bytes(Mode::File)).unwrap();
    path
}

#[test]
fn a_report_of_the_table_is_the_report_of_the_recording() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["tiers-recording/perf.data.zst", "php-recording/perf.data.zst", "recording-node/perf.data.zst"] {
        let table = dir.path().join("table");
        stdout(&["export", "--to", "parquet", "-o", table.to_str().unwrap()], &[&fixture(name)]);
        let report = |input: &Path, names: &[&str]| -> BTreeMap<(String, String), Value> {
            let told = stdout(&[&["report", "--format", "json"], names].concat(), &[input]);
            let rows: Vec<Value> = serde_json::from_slice(&told).unwrap();
            let file = |row: &Value| row["module"].as_str().and_then(|path| Some(path.rsplit('/').next()?.to_owned()));
            let key = |row: &Value| (row["symbol"].to_string(), row["kind"].to_string() + &format!("{:?}", file(row)));
            let without_places = |mut row: Value| {
                let told = row.as_object_mut().unwrap();
                // JIT code's is where its dump was found, and a table leaves that out.
                told.remove("module");
                // Any line of a function that only called is reported.
                if told["self"] == 0 {
                    told.remove("source");
                }
                row
            };
            rows.into_iter().map(|row| (key(&row), without_places(row))).collect()
        };
        let (of_table, of_recording) = (report(&table, &[]), report(&fixture(name), &["--merge-tiers"]));
        assert!(of_recording.len() > 10);
        assert_eq!(of_table, of_recording, "{name}");
    }
}

#[test]
fn pictures_of_the_table_are_those_of_the_recording() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("t.parquet");
    stdout(&["export", "-o", table.to_str().unwrap()], &[&tiers()]);
    let folded = |args: &[&str], input: &Path| {
        let text = String::from_utf8(stdout(&[&["collapse"], args].concat(), &[input])).unwrap();
        text.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    assert_eq!(folded(&[], &table), folded(&["--merge-tiers"], &tiers()));
    let time = ["--time", "20%-60%"];
    assert_eq!(folded(&time, &table), folded(&[&["--merge-tiers"], &time[..]].concat(), &tiers()));
    let diff = stdout(&["flamegraph", "--diff", table.to_str().unwrap()], &[&table]);
    assert!(diff.starts_with(b"<?xml") || diff.starts_with(b"<svg"), "{}", String::from_utf8_lossy(&diff[..50]));
}

/// The number of frames that have a name depends on which files of the recorded machine this one has.
fn share_that_collapse_says(recording: &Path) -> f64 {
    let run = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("collapse").arg(recording).output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    let words: Vec<&str> = said.split_whitespace().collect();
    let [percent, all] = words
        .windows(6)
        .find_map(|words| match words {
            ["resolved", percent, "%", "of", all, "frames"] => {
                Some([percent, all].map(|count| count.parse::<f64>().unwrap()))
            }
            _ => None,
        })
        .unwrap_or_else(|| panic!("{said}"));
    assert!(percent < 100.0 && all == 26_874.0, "{said}");
    percent / 100.0
}

#[test]
fn a_row_shows_its_recording_thread_and_what_ran() {
    let batches = batches(&stdout(&["export", "--to", "arrow"], &[&tiers()]));
    // That of what is in the file, however it is packed.
    let unpacked = zstd::decode_all(File::open(tiers()).unwrap()).unwrap();
    let hash: String = Sha1::digest(unpacked).iter().map(|byte| format!("{byte:02x}")).collect();
    let only = |name: &str| -> Option<String> {
        let all: BTreeSet<_> = texts(&batches, name).into_iter().collect();
        assert_eq!(all.len(), 1, "{name}: {all:?}");
        all.into_iter().next().unwrap()
    };
    assert_eq!(only("input"), Some(hash));
    assert_eq!((only("event").unwrap(), only("unit").unwrap()), ("cpu-clock:u".to_owned(), "nanoseconds".to_owned()));
    assert_eq!(only("comm").unwrap(), "tiers");
    assert_eq!(numbers(&batches, "weight").iter().flatten().sum::<i64>(), 1_881 * 50_000);
    let batch = &batches[0];
    let (functions, addresses) = (batch["functions"].as_list::<i32>(), batch["addresses"].as_list::<i32>());
    assert_eq!(functions.value_offsets(), addresses.value_offsets());
    assert_eq!(batch["leaf_address"].as_primitive::<Int64Type>().value(0), {
        let of_first = addresses.value(0);
        let of_first = of_first.as_primitive::<Int64Type>();
        of_first.value(of_first.len() - 1)
    });
    assert_eq!(batch["depth"].as_primitive::<Int32Type>().value(0), functions.value_length(0));
    let share = batch["share_named"].as_primitive::<arrow_array::types::Float64Type>().value(0);
    assert!((share - share_that_collapse_says(&tiers())).abs() < 0.000_501, "{share}");
    let (time, start) = (&batch["time"], &batch["start"]);
    assert_eq!(time.as_primitive::<TimestampMicrosecondType>().null_count(), start.null_count());
}

#[test]
fn stretches_of_time_hold_what_was_in_them() {
    let each = batches(&stdout(&["export", "--to", "arrow"], &[&tiers()]));
    let summed = ["export", "--to", "arrow", "--bucket", "10ms", "--detail", "names"];
    let summed = batches(&stdout(&summed, &[&tiers()]));
    let total = |batches: &[RecordBatch]| {
        let sum = |name: &str| numbers(batches, name).into_iter().flatten().sum::<i64>();
        (sum("weight"), sum("count"))
    };
    assert_eq!(total(&each), total(&summed));
    let rows = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    assert!(rows(&summed) * 3 < rows(&each) * 2, "{} of {}", rows(&summed), rows(&each));
    let by_stretch = |batches: &[RecordBatch], time: &dyn Fn(i64) -> i64| {
        let mut sums = BTreeMap::<(i64, Option<String>), i64>::new();
        let times = numbers(batches, "time_ns");
        for ((at, leaf), count) in times.into_iter().zip(texts(batches, "leaf")).zip(numbers(batches, "count")) {
            *sums.entry((time(at.unwrap()), leaf)).or_default() += count.unwrap();
        }
        sums
    };
    // Stretches begin with those of the wall clock, wherever the recording's own clock began.
    let epoch = numbers(&summed, "time_ns")[0].unwrap().rem_euclid(10_000_000);
    let start = |at: i64| (at - epoch).div_euclid(10_000_000) * 10_000_000 + epoch;
    assert_eq!(by_stretch(&summed, &|at| at), by_stretch(&each, &start));
}

#[test]
fn equal_recordings_are_equal_files_in_equal_places() {
    let dir = tempfile::tempdir().unwrap();
    let fleet = dir.path().join("fleet");
    let export = |threads: &str| {
        let args = ["export", "--to", "parquet", "--partition", "--threads", threads, "-o", fleet.to_str().unwrap()];
        stdout(&args, &[&tiers(), &fixture("php-recording/perf.data.zst"), &tiers()]);
        files_below(&fleet)
    };
    let first = export("1");
    let of = |table: &str| first.keys().filter(|path| path.starts_with(table)).cloned().collect::<Vec<_>>();
    assert_eq!(["samples", "stacks", "recordings"].map(|table| of(table).len()), [2; 3], "{:?}", first.keys());
    for path in of("samples").iter().chain(&of("stacks")) {
        let path = path.to_str().unwrap();
        assert!(path.contains("/host=") && path.contains("/day=") && path.ends_with(".parquet"), "{path}");
    }
    assert!(export("3") == first);
    let file = SerializedFileReader::new(File::open(fleet.join(&of("samples")[0])).unwrap()).unwrap();
    let groups = file.metadata().row_groups();
    let sorted = |group: &RowGroupMetaData| Some(group.sorting_columns()?.first()?.column_idx);
    let leaf = |group: &RowGroupMetaData| {
        group.columns().iter().position(|column| column.column_path().string() == "leaf").map(|leaf| leaf as i32)
    };
    assert!(groups.iter().all(|group| sorted(group).is_some() && sorted(group) == leaf(group)));
    let keys = file.metadata().file_metadata().key_value_metadata().unwrap();
    assert!(keys.iter().any(|key| key.key == "jitgraft.schema" && key.value.as_deref() == Some("2")));
    let fields = file.metadata().file_metadata().schema().get_fields();
    let ids: BTreeSet<i32> = fields.iter().map(|field| field.get_basic_info().id()).collect();
    assert!(fields.iter().all(|field| field.get_basic_info().has_id()) && ids.len() == fields.len());
    let columns: Vec<_> = file.metadata().file_metadata().schema().get_fields().iter().map(|of| of.name()).collect();
    assert!(!columns.contains(&"host") && !columns.contains(&"day") && columns.contains(&"leaf"), "{columns:?}");
}

#[test]
fn groups_of_rows_can_be_left_out_by_what_is_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let (table, samples) = (dir.path().join("t.parquet"), 300_000);
    stdout(&["export", "-o", table.to_str().unwrap()], &[&recorded(dir.path(), samples)]);
    let file = SerializedFileReader::new(File::open(&table).unwrap()).unwrap();
    let groups = file.metadata().row_groups();
    assert_eq!(
        groups.iter().map(|group| group.num_rows()).collect::<Vec<_>>(),
        [1 << 17, 1 << 17, 300_000 - (1 << 18)]
    );
    let column = |name: &str| {
        let columns = groups[0].columns();
        columns.iter().position(|column| column.column_path().string() == name).unwrap()
    };
    let mut times = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        let Some(Statistics::Int64(time)) = group.column(column("time_ns")).statistics() else { panic!("no times") };
        times.push((*time.min_opt().unwrap(), *time.max_opt().unwrap()));
        for name in ["event", "leaf", "pid", "tid"] {
            assert!(group.column(column(name)).statistics().is_some(), "{name}");
        }
        assert!(group.column(column("leaf")).bloom_filter_offset().is_some(), "{at}");
    }
    assert!(times.windows(2).all(|pair| pair[0].1 < pair[1].0), "{times:?}");
    // Inside of a group, rows of one function stand side by side.
    let leaves = column("leaf");
    let fields = file.metadata().file_metadata().schema().clone();
    let only_leaf = fields.get_fields().iter().filter(|field| field.name() == "leaf").cloned().collect();
    let only_leaf =
        parquet::schema::types::Type::group_type_builder(fields.name()).with_fields(only_leaf).build().unwrap();
    let group = file.get_row_group(0).unwrap();
    let rows = group.get_row_iter(Some(only_leaf)).unwrap();
    let rows: Vec<String> = rows.map(|row| row.unwrap().to_string()).collect();
    assert!(rows.is_sorted() && leaves > 0);
}

#[test]
fn a_stream_is_read_while_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let recording = recorded(dir.path(), 100_000);
    let mut program = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
        .args(["export", "--to", "arrow"])
        .arg(&recording)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stream = StreamReader::try_new(program.stdout.take().unwrap(), None).unwrap();
    let first = stream.next().unwrap().unwrap();
    assert_eq!(first.num_rows(), 1 << 14);
    // A pipe holds far less than what is left: it still runs, and a reader that goes away ends it.
    assert!(program.try_wait().unwrap().is_none());
    drop(stream);
    assert!(program.wait().unwrap().success());
}

#[test]
fn an_unreadable_input_is_reported_and_the_rest_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("t.parquet");
    stdout(&["export", "-o", table.to_str().unwrap()], &[&tiers()]);
    let mut bytes = fs::read(&table).unwrap();
    fs::write(&table, &bytes[..bytes.len() / 2]).unwrap();
    let said = refused(&["report"], &[&table]);
    assert!(said.contains("t.parquet") && said.contains("cannot be read"), "{said}");
    bytes[200] ^= 0xff;
    fs::write(&table, &bytes).unwrap();
    let output = jitgraft(&["report"], &[&table]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn no_byte_of_a_table_panics_its_reader() {
    use jitgraft::contract::format::{ReadOptions, WriteOptions};
    use jitgraft::error::Skipped;
    use jitgraft::formats::tables::parquet;
    use jitgraft::model::stacks::{Frame, FrameKind, Profile, Row, Track, Unit};
    let mut profile = Profile::new();
    let (name, track) = (profile.name(b"f"), profile.track(Track::default()));
    let frame = profile.frame(Frame::new(name, FrameKind::Jit));
    let stack = Some(profile.stack(None, frame));
    let series = profile.series_named("cycles", Unit::Samples);
    profile.push(series, Row { track, stack, weight: 3, count: 1, time: None });
    let mut file = Vec::new();
    parquet::write(&profile, &WriteOptions::default(), &mut file).unwrap();
    // Damage may be an error, or a warning.
    let read = |bytes: &[u8]| {
        let groups = parquet::open(bytes, &ReadOptions::default()).ok()?;
        let profiles = (0..groups.count()).map(|group| groups.read(group, &mut Skipped::new(groups.what())));
        Some(
            profiles
                .flat_map(|profile| profile.series)
                .flat_map(|series| series.rows)
                .map(|row| row.weight)
                .sum::<u64>(),
        )
    };
    assert_eq!(read(&file), Some(3));
    for at in 0..file.len() {
        read(&file[..at]);
        for with in [0x00, 0x7f, 0xff] {
            let mut changed = file.clone();
            changed[at] = with;
            read(&changed);
        }
    }
}

#[test]
fn a_table_of_other_columns_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.parquet");
    let columns = [("n", std::sync::Arc::new(arrow_array::Int32Array::from(vec![1])) as arrow_array::ArrayRef)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let said = refused(&["report"], &[&path]);
    assert!(said.contains("without a column called functions"), "{said}");
}

#[test]
fn options_for_tables_are_refused_elsewhere() {
    for flag in [&["--bucket", "1s"][..], &["--partition"], &["--detail", "names"]] {
        let said = refused(&[&["export", "--to", "csv"], flag].concat(), &[&tiers()]);
        assert!(said.contains(flag[0]) && said.contains("csv is none"), "{said}");
    }
    let said = refused(&["export", "--to", "parquet", "--bucket", "0s"], &[&tiers()]);
    assert!(said.contains("longer than nothing"), "{said}");
    let said = refused(&["export", "--to", "parquet", "--partition"], &[&tiers()]);
    assert!(said.contains("-o DIR"), "{said}");
}

#[test]
fn standard_input_is_a_recording_too() {
    let mut packed = Vec::new();
    File::open(tiers()).unwrap().read_to_end(&mut packed).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
        .args(["export", "--to", "arrow", "--jitdump"])
        .arg(fixture("tiers-recording"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = program.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, &packed).unwrap();
    drop(stdin);
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success());
    let weights = |stream: &[u8]| numbers(&batches(stream), "weight").into_iter().flatten().sum::<i64>();
    assert_eq!(weights(&output.stdout), weights(&stdout(&["export", "--to", "arrow"], &[&tiers()])));
}

#[test]
fn a_table_of_version_1_is_read_and_its_code_without_a_name_gets_a_kind_by_its_module() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/tables/version-1.parquet");
    let samples = |input: &Path| -> BTreeMap<String, u64> {
        let report = ["report", "--format", "json", "--group-by", "kind"];
        let rows: Vec<Value> = serde_json::from_slice(&stdout(&report, &[input])).unwrap();
        rows.iter().map(|row| (row["kind"].as_str().unwrap().to_owned(), row["samples"].as_u64().unwrap())).collect()
    };
    let kinds = [("native", 4), ("native, unnamed", 697), ("unnamed code (no file)", 1318)];
    let wanted: BTreeMap<_, _> = kinds.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
    assert_eq!(samples(&old), wanted);
    // Written again, it is one of the version that is written now; what it holds is the same.
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("new.parquet");
    stdout(&["export", "--to", "parquet", "-o", new.to_str().unwrap()], &[&old]);
    assert_eq!(samples(&new), wanted);
    let version = |path: &Path| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        reader.schema().metadata()["jitgraft.schema"].clone()
    };
    assert_eq!((version(&old), version(&new)), ("1".to_owned(), "2".to_owned()));
}

/// A table of two rows, its lists of the type that `lists` makes of the usual one.
fn foreign(lists: impl Fn(ListArray) -> ArrayRef, properties: WriterProperties, path: &Path) {
    let mut functions = ListBuilder::new(StringBuilder::new());
    for stack in [&["main", "f"][..], &["main", "g"]] {
        stack.iter().for_each(|function| functions.values().append_value(function));
        functions.append(true);
    }
    let weights: ArrayRef = Arc::new(arrow_array::Float64Array::from(vec![3.0, 4.0]));
    let hosts: ArrayRef = Arc::new(arrow_array::NullArray::new(2));
    let columns = [("functions", lists(functions.finish()), false), ("weight", weights, false), ("host", hosts, true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn tables_of_other_tools_are_read_whatever_they_are_packed_in_and_however_wide_their_lists_are() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let read = || {
        let folded = String::from_utf8(stdout(&["collapse", "-q"], &[&path])).unwrap();
        folded.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let expected: BTreeSet<String> = ["main;f 3", "main;g 4"].map(str::to_owned).into();
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ];
    for codec in codecs {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties = WriterProperties::builder().set_compression(codec).set_writer_version(version).build();
            foreign(|list| Arc::new(list), properties, &path);
            assert_eq!(read(), expected, "{codec:?} {version:?}");
        }
    }
    let large = |list: ListArray| -> ArrayRef {
        let (_, offsets, values, nulls) = list.into_parts();
        let offsets = OffsetBuffer::new(offsets.iter().map(|offset| i64::from(*offset)).collect());
        let field = Arc::new(Field::new("item", values.data_type().clone(), true));
        Arc::new(LargeListArray::new(field, offsets, values, nulls))
    };
    foreign(large, WriterProperties::default(), &path);
    assert_eq!(read(), expected);
    foreign(|list| Arc::new(ListViewArray::from(list)), WriterProperties::default(), &path);
    assert_eq!(read(), expected);
}

#[test]
fn a_table_of_which_nothing_can_be_decoded_fails() {
    let dir = tempfile::tempdir().unwrap();
    let (table, both) = (dir.path().join("t.parquet"), dir.path().join("both.parquet"));
    foreign(|list| Arc::new(list), WriterProperties::default(), &table);
    let mut bytes = fs::read(&table).unwrap();
    bytes[4..40].fill(0xff);
    fs::write(&table, &bytes).unwrap();
    for command in [&["report"][..], &["collapse"], &["export", "--to", "arrow"], &["flamegraph"]] {
        let said = refused(command, &[&table]);
        assert!(said.contains("t.parquet: at byte") && said.contains("1 row group skipped"), "{command:?}: {said}");
    }
    // Where another group can be, it is read; with --strict that fails, too.
    stdout(&["export", "-o", both.to_str().unwrap()], &[&recorded(dir.path(), 140_000)]);
    let file = SerializedFileReader::new(File::open(&both).unwrap()).unwrap();
    let columns = file.metadata().row_group(0).columns();
    let functions = columns.iter().find(|column| column.column_path().string().starts_with("functions")).unwrap();
    let (start, _) = functions.byte_range();
    let mut bytes = fs::read(&both).unwrap();
    bytes[start as usize..][..100].fill(0xff);
    fs::write(&both, &bytes).unwrap();
    let output = jitgraft(&["report"], &[&both]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("1 row group skipped"), "{said}");
    assert!(refused(&["report", "--strict"], &[&both]).contains("1 row group skipped"));
}

#[test]
fn a_table_of_several_recordings_becomes_the_same_table_again() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let names = ["tiers-recording/perf.data.zst", "php-recording/perf.data.zst", "recording-node/perf.data.zst"];
    let recordings = names.map(fixture);
    let recordings = recordings.each_ref().map(PathBuf::as_path);
    for options in [&[][..], &["--bucket", "10ms"], &["--label", "team=a", "--label", "zone=b", "--host", "h"]] {
        let export = |from: &[&Path], to: &Path, options: &[&str]| {
            stdout(&[&["export", "-q", "-o", to.to_str().unwrap()], options].concat(), from);
        };
        export(&recordings, &at("one.parquet"), options);
        export(&[&at("one.parquet")], &at("two.parquet"), &[]);
        let [one, two] = ["one.parquet", "two.parquet"].map(|name| {
            let mut rows = rows_of(&at(name));
            rows.sort();
            rows
        });
        assert!(one.len() > 1_000);
        assert!(one == two, "{options:?}: {:?}", one.iter().zip(&two).find(|(one, two)| one != two));
    }
    // A data set of it has the same rows, in a file for each recording.
    let set = at("set");
    stdout(&["export", "-q", "--to", "parquet", "--partition", "-o", set.to_str().unwrap()], &[&at("one.parquet")]);
    let files: Vec<_> = files_below(&set.join("samples")).into_keys().collect();
    assert_eq!(files.len(), names.len(), "{files:?}");
    let rows: usize = files.iter().map(|file| rows_of(&set.join("samples").join(file)).len()).sum();
    assert_eq!(rows, rows_of(&at("one.parquet")).len());
}

#[test]
fn a_data_set_leaves_out_what_cannot_be_read_and_reports_it() {
    let dir = tempfile::tempdir().unwrap();
    let (input, set) = (dir.path().join("input"), dir.path().join("set"));
    fs::create_dir_all(input.join("php")).unwrap();
    let packed = fs::read(fixture("php-recording/perf.data.zst")).unwrap();
    let plain = zstd::decode_all(&packed[..]).unwrap();
    fs::write(input.join("php/perf.data"), &plain).unwrap();
    fs::write(input.join("php/perf-1.map"), "1000 10 f\n").unwrap();
    fs::write(input.join("a copy.data.zst"), &packed).unwrap();
    fs::write(input.join("empty.data"), "").unwrap();
    fs::write(input.join("text.data"), "hello\n").unwrap();
    fs::write(input.join("cut.data.zst"), &packed[..packed.len() / 2]).unwrap();
    fs::write(input.join("stacks.folded"), "main;f 3\n").unwrap();
    let export = |options: &[&str]| {
        let words = ["export", "--to", "parquet", "--partition", "-o", set.to_str().unwrap()];
        let output = jitgraft(&[&words, options].concat(), &[&input]);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = export(&["--strict"]);
    assert!(status == Some(1) && !set.exists(), "{said}");
    let (status, said) = export(&[]);
    assert_eq!(status, Some(1), "{said}");
    for name in ["empty.data", "text.data", "cut.data.zst"] {
        assert!(said.lines().any(|line| line.starts_with("error: ") && line.contains(name)), "{name}: {said}");
    }
    assert!(said.contains("2 of 6 inputs written, 1 the same as others, 3 not read"), "{said}");
    let rows = |table: &str| {
        let files = files_below(&set.join(table)).into_keys();
        files.map(|file| rows_of(&set.join(table).join(file)).len()).collect::<Vec<_>>()
    };
    assert_eq!((rows("samples").len(), rows("stacks").len(), rows("recordings")), (2, 2, vec![1; 6]));
    let before = files_below(&set);
    let (status, said) = export(&["--skip-existing"]);
    assert!(status == Some(1) && said.contains("0 of 6 inputs written, 3 known, 3 not read"), "{said}");
    assert!(files_below(&set) == before);
    // Mended and new files are read.
    for bad in ["empty.data", "text.data", "cut.data.zst"] {
        fs::remove_file(input.join(bad)).unwrap();
    }
    fs::write(input.join("text.data"), "main;g 4\n").unwrap();
    let (status, said) = export(&["--skip-existing", "--day", "2026-11-22"]);
    assert!(status == Some(0) && said.contains("1 of 4 inputs written, 3 known"), "{said}");
    assert_eq!(files_below(&set).keys().filter(|path| path.to_str().unwrap().contains("day=2026-11-22")).count(), 2);
    assert_eq!(rows("recordings").len(), 6, "the text's own entry is another now");
    // Sums are beside samples.
    let (status, said) = export(&["--skip-existing", "--bucket", "10s"]);
    assert!(status == Some(0) && said.contains("3 of 4 inputs written, 1 the same as others"), "{said}");
    assert_eq!(rows("samples").len(), 6);
    let folded = String::from_utf8(stdout(&["merge", "-q", "--to", "folded"], &[&set.join("samples")])).unwrap();
    assert!(folded.lines().any(|line| line.ends_with("main;f 6")), "{folded}");
    let of_set = String::from_utf8(stdout(&["merge", "-q", "--to", "folded"], &[&set])).unwrap();
    assert_eq!(of_set, folded, "the tables beside the rows are no inputs");
}

#[test]
fn labels_of_pprof_are_a_column() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let strings = ["", "samples", "count", "f", "request", "slow", "bytes"];
    let number = |field: u8, number: u8| vec![field << 3, number];
    let bytes = |field: u8, bytes: &[u8]| [vec![field << 3 | 2, bytes.len() as u8], bytes.to_vec()].concat();
    let label = |key: u8, text: u8, of: u8| {
        let value = if text > 0 { number(2, text) } else { number(3, of) };
        bytes(3, &[number(1, key), value].concat())
    };
    let sample = |value: u8, labels: &[u8]| bytes(2, &[number(1, 1), number(2, value), labels.to_vec()].concat());
    let profile = [
        bytes(1, &[number(1, 1), number(2, 2)].concat()),
        sample(3, &[label(4, 5, 0), label(6, 0, 64)].concat()),
        sample(4, &[]),
        bytes(4, &[number(1, 1), bytes(4, &number(1, 1))].concat()),
        bytes(5, &[number(1, 1), number(2, 3)].concat()),
        strings.map(|text| bytes(6, text.as_bytes())).concat(),
    ];
    fs::write(at("p.pb"), profile.concat()).unwrap();
    stdout(&["export", "-q", "-o", at("one.parquet").to_str().unwrap()], &[&at("p.pb")]);
    stdout(&["export", "-q", "-o", at("two.parquet").to_str().unwrap()], &[&at("one.parquet")]);
    let rows = rows_of(&at("one.parquet"));
    assert_eq!(rows.len(), 2);
    let labels = |row: &&String| row.contains("request") && row.contains("slow") && row.contains("64");
    assert_eq!(rows.iter().filter(labels).count(), 1, "{rows:?}");
    assert_eq!(rows_of(&at("two.parquet")), rows);
    // Other outputs add up what differs in labels alone.
    assert!(String::from_utf8(stdout(&["collapse", "-q"], &[&at("p.pb")])).unwrap().trim_end().ends_with(" 7"));
}

#[test]
fn stacks_have_one_number_in_every_file() {
    let dir = tempfile::tempdir().unwrap();
    let ids = |text: &str, options: &[&str]| {
        let path = dir.path().join("t.folded");
        fs::write(&path, text).unwrap();
        let batches = batches(&stdout(&[&["export", "-q", "--to", "arrow"], options].concat(), &[&path]));
        numbers(&batches, "stack_id").into_iter().flatten().collect::<Vec<_>>()
    };
    let (one, other) = (ids("a;b 1\na;c 2\n", &[]), ids("x 1\na;c 5\n", &["--detail", "names"]));
    assert!(one[0] != one[1] && one[1] == other[1] && one.iter().chain(&other).all(|id| *id > 0), "{one:?} {other:?}");
    // As docs/sql.md states it: SHA-1 of the caller's number, the function, a zero byte and the module.
    let id = |caller: i64, function: &str| {
        let hash = Sha1::digest([&caller.to_be_bytes()[..], function.as_bytes(), b"\0"].concat());
        i64::from_be_bytes(hash[..8].try_into().unwrap()).abs()
    };
    assert_eq!(one, [id(id(0, "a"), "b"), id(id(0, "a"), "c")]);
}

/// All attributes of a list of them, as texts.
fn attributes(list: &Value) -> BTreeMap<String, String> {
    let value = |value: &Value| value.as_object().unwrap().values().next().unwrap().clone();
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pair = |one: &Value| (one["key"].as_str().unwrap().to_owned(), text(value(&one["value"])));
    list.as_array().unwrap().iter().map(pair).collect()
}

#[test]
fn opentelemetry_s_resources_are_those_of_each_recording_in_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let [one, two] = ["tiers-recording", "php-recording"].map(|name| fixture(name).join("perf.data.zst"));
    stdout(&["export", "-q", "-o", &at("one.parquet"), "--host", "a"], &[&one]);
    stdout(&["export", "-q", "-o", &at("two.parquet"), "--host", "b", "--label", "team=x"], &[&two]);
    let tables = ["one.parquet", "two.parquet"].map(|name| dir.path().join(name));
    stdout(&["export", "-q", "-o", &at("both.parquet")], &tables.each_ref().map(PathBuf::as_path));
    let resources = |input: &Path, options: &[&str]| -> BTreeSet<[String; 3]> {
        let text = stdout(&[&["export", "-q", "--to", "otlp-json"], options].concat(), &[input]);
        let messages: Vec<Value> =
            text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(json).collect();
        let resources = messages.iter().flat_map(|message| message["resourceProfiles"].as_array().unwrap());
        let resources = resources.map(|resource| attributes(&resource["resource"]["attributes"]));
        let told = |of: BTreeMap<String, String>| {
            ["host.name", "service.name", "team"].map(|key| of.get(key).cloned().unwrap_or_default())
        };
        resources.map(told).collect()
    };
    let wanted = |rows: [[&str; 3]; 2]| BTreeSet::from(rows.map(|row| row.map(str::to_owned)));
    // Without a command, a service is called after its thread.
    let of_both = resources(&dir.path().join("both.parquet"), &[]);
    assert_eq!(of_both, wanted([["a", "tiers", ""], ["b", "php", ""]]));
    let given = ["--label", "service.name=shop", "--label", "team=y"];
    let of_both = resources(&dir.path().join("both.parquet"), &given);
    assert_eq!(of_both, wanted([["a", "shop", "y"], ["b", "shop", "y"]]));
    // The clocks of recordings differ: a time of the wall clock is that of its own.
    stdout(&["export", "-q", "-o", &at("again.otlp")], &[&dir.path().join("both.parquet")]);
    stdout(&["export", "-q", "-o", &at("again.parquet")], &[&dir.path().join("again.otlp")]);
    let times = |name: &str| {
        let column = |row: &String| row.split(", ").find(|cell| cell.starts_with("time: ")).map(str::to_owned);
        let mut times: Vec<_> = rows_of(&dir.path().join(name)).iter().map(column).collect();
        times.sort();
        times
    };
    assert_eq!(times("again.parquet"), times("both.parquet"));
}

fn json(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap()
}

#[test]
fn machines_spans_and_attributes_of_opentelemetry_s_profiles_are_columns() {
    let dir = tempfile::tempdir().unwrap();
    let text = |text: &str| serde_json::json!({ "stringValue": text });
    let attribute = |key: &str, of: &str| serde_json::json!({ "key": key, "value": text(of) });
    let resource = |host: &str, service: &str, link: u64| {
        serde_json::json!({
            "resource": { "attributes": [attribute("host.name", host), attribute("service.name", service)] },
            "scopeProfiles": [{ "profiles": [{
                "sampleType": { "typeStrindex": 1, "unitStrindex": 2 },
                "samples": [{
                    "stackIndex": 1, "attributeIndices": [1], "linkIndex": link,
                    "values": ["3"],
                }],
            }] }],
        })
    };
    let (trace, span) = ("0123456789abcdef0123456789abcdef", "0123456789abcdef");
    let message = serde_json::json!({
        "resourceProfiles": [resource("a", "shop", 1), resource("b", "store", 0)],
        "dictionary": {
            "stringTable": ["", "cpu", "nanoseconds", "f", "request"],
            "mappingTable": [{}], "locationTable": [{}, { "lines": [{ "functionIndex": 1 }] }],
            "functionTable": [{}, { "nameStrindex": 3 }], "stackTable": [{}, { "locationIndices": [1] }],
            "linkTable": [{}, { "traceId": trace, "spanId": span }],
            "attributeTable": [{}, { "keyStrindex": 4, "value": text("slow") }],
        },
    });
    let at = |name: &str| dir.path().join(name);
    fs::write(at("p.otlp.json"), message.to_string()).unwrap();
    let labels =
        |row: &str| -> [bool; 6] { [trace, span, "request", "slow", "shop", "store"].map(|text| row.contains(text)) };
    let check = |name: &str| {
        let rows = rows_of(&at(name));
        let of = |host: &str| rows.iter().filter(|row| row.contains(&format!("host: \"{host}\""))).collect::<Vec<_>>();
        let (a, b) = (of("a"), of("b"));
        assert_eq!((rows.len(), a.len(), b.len()), (2, 1, 1), "{rows:?}");
        assert_eq!(
            (labels(a[0]), labels(b[0])),
            ([true, true, true, true, true, false], [false, false, true, true, false, true])
        );
    };
    stdout(&["export", "-q", "-o", at("one.parquet").to_str().unwrap()], &[&at("p.otlp.json")]);
    check("one.parquet");
    stdout(&["export", "-q", "-o", at("two.otlp").to_str().unwrap()], &[&at("one.parquet")]);
    stdout(&["export", "-q", "-o", at("two.parquet").to_str().unwrap()], &[&at("two.otlp")]);
    check("two.parquet");
    // Each machine has a file of its own, with one name.
    let set = at("set");
    stdout(&["export", "-q", "--to", "parquet", "--partition", "-o", set.to_str().unwrap()], &[&at("p.otlp.json")]);
    assert_eq!(files_below(&set.join("samples")).len(), 2);
    // Other outputs add up what differs in labels alone.
    assert!(String::from_utf8(stdout(&["collapse", "-q"], &[&at("p.otlp.json")])).unwrap().ends_with(" 6\n"));
}

#[test]
fn a_compacted_data_set_has_all_rows_in_fewer_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let names = ["tiers-recording", "php-recording", "recording-node"];
    let recordings = names.map(|name| fixture(name).join("perf.data.zst"));
    let recordings = recordings.each_ref().map(PathBuf::as_path);
    let export = |set: &Path, options: &[&str], inputs: &[&Path]| {
        let words = ["export", "--to", "parquet", "--partition", "-o", set.to_str().unwrap()];
        let output = jitgraft(&[&words, options].concat(), inputs);
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    for options in [&[][..], &["--bucket", "10ms"]] {
        export(
            &at("old"),
            &[&["--host", "h", "--day", "2026-11-22", "--label", "team=a"], options].concat(),
            &recordings,
        );
    }
    let compact = |from: &Path, to: &Path| export(to, &["--compact"], &[from]);
    let (ok, said) = compact(&at("old"), &at("new"));
    assert!(ok && said.contains("6 files of rows became 1 file"), "{said}");
    let rows = |set: &str, table: &str| {
        let files: Vec<_> = files_below(&at(set).join(table)).into_keys().collect();
        let mut rows: Vec<_> = files.iter().flat_map(|file| rows_of(&at(set).join(table).join(file))).collect();
        rows.sort();
        (files, rows)
    };
    for table in ["samples", "recordings"] {
        let ((_, old), (files, new)) = (rows("old", table), rows("new", table));
        assert!(old == new && files.len() == 1, "{files:?}: {:?}", old.iter().zip(&new).find(|(old, new)| old != new));
    }
    let distinct = |set: &str| {
        rows("new", "samples").1.len().min(rows(set, "stacks").1.into_iter().collect::<BTreeSet<_>>().len())
    };
    assert_eq!(distinct("old"), rows("new", "stacks").1.len());
    assert!(files_below(&at("new")).keys().all(
        |path| path.starts_with("recordings") || path.to_str().unwrap().contains("/host=h/day=2026-11-22/compact-")
    ));
    // Done again, it is the same; compacted again, too. What is exported again is known.
    let before = files_below(&at("new"));
    assert!(compact(&at("old"), &at("new")).0 && files_below(&at("new")) == before);
    let (ok, said) = export(&at("new"), &[], &recordings);
    assert!(ok && said.contains("0 of 3 inputs written, 3 known") && files_below(&at("new")) == before, "{said}");
    let copy = at("copy.data.zst");
    fs::copy(recordings[0], &copy).unwrap();
    let (ok, said) = export(&at("new"), &[], &[&copy]);
    assert!(ok && said.contains("0 of 1 input written, 1 the same as others"), "{said}");
    assert_eq!(rows("new", "samples").1.len(), rows("old", "samples").1.len());
    assert!(compact(&at("new"), &at("again")).0 && rows("again", "samples").1 == rows("old", "samples").1);
    // Nothing is lost or written over without a word.
    let (ok, said) = compact(&at("old"), &at("old"));
    assert!(!ok && said.contains("is the data set that is read"), "{said}");
    let path = |name: &str| at("old/samples/host=h/day=2026-11-22").join(name);
    let some = rows("old", "samples").0[0].file_name().unwrap().to_str().unwrap().to_owned();
    fs::copy(path(&some), path("0123.parquet")).unwrap();
    let (ok, said) = compact(&at("old"), &at("third"));
    assert!(ok && said.contains("0123.parquet: has no entry in recordings, and is left out"), "{said}");
    assert_eq!(rows("third", "samples").1, rows("new", "samples").1);
    fs::remove_file(path(&some)).unwrap();
    let (ok, said) = compact(&at("old"), &at("fourth"));
    assert!(!ok && said.contains("has an entry with rows, but no rows"), "{said}");
}

/// A message with one sample of each of these machines, in a mapping of one path that has a build of its own; so many samples were
/// lost there.
fn of_machines(machines: &[(&str, &str, u64)]) -> Value {
    let text = |text: &str| serde_json::json!({ "stringValue": text });
    let resource = |(at, (host, _, lost)): (usize, &(&str, &str, u64))| {
        serde_json::json!({
            "resource": { "attributes": [{ "key": "host.name", "value": text(host) }] },
            "scopeProfiles": [{
                "scope": { "attributes": [{ "key": "jitgraft.lost", "value": { "intValue": lost.to_string() } }] },
                "profiles": [{
                    "sampleType": { "typeStrindex": 1, "unitStrindex": 2 },
                    "samples": [{ "stackIndex": at + 1, "values": ["3"] }],
                }],
            }],
        })
    };
    let key = "process.executable.build_id.gnu";
    let builds = machines.iter().map(|(_, build, _)| serde_json::json!({ "keyStrindex": 5, "value": text(build) }));
    let range = serde_json::json!({ "memoryStart": "4096", "memoryLimit": "8192", "filenameStrindex": 4 });
    let mapping = |at: usize| {
        let mut mapping = range.clone();
        mapping["attributeIndices"] = serde_json::json!([at]);
        mapping
    };
    let location = |at| serde_json::json!({ "mappingIndex": at, "address": "4100", "lines": [{ "functionIndex": 1 }] });
    let stack = |at| serde_json::json!({ "locationIndices": [at] });
    let table = |entries: &mut dyn Iterator<Item = Value>| {
        std::iter::once(serde_json::json!({})).chain(entries).collect::<Vec<_>>()
    };
    let numbers = || 1..=machines.len();
    serde_json::json!({
        "resourceProfiles": machines.iter().enumerate().map(resource).collect::<Vec<_>>(),
        "dictionary": {
            "stringTable": ["", "cpu", "nanoseconds", "f", "/usr/bin/shop", key],
            "mappingTable": table(&mut numbers().map(mapping)),
            "locationTable": table(&mut numbers().map(location)),
            "functionTable": [{}, { "nameStrindex": 3 }],
            "stackTable": table(&mut numbers().map(stack)),
            "attributeTable": table(&mut builds.into_iter()),
        },
    })
}

#[test]
fn two_builds_of_one_path_stay_two() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let [one, other] = ["ab".repeat(20), "cd".repeat(20)];
    fs::write(at("p.otlp.json"), of_machines(&[("a", &one, 0), ("b", &other, 0)]).to_string()).unwrap();
    // The last time by an output that has no column for machines.
    let ways = ["1.parquet", "2.parquet", "3.otlp", "4.parquet", "5.pb.gz", "6.parquet"];
    let mut before = at("p.otlp.json");
    for name in ways {
        stdout(&["export", "-q", "-o", at(name).to_str().unwrap()], &[&before]);
        before = at(name);
        if name.ends_with(".parquet") {
            let rows = rows_of(&before);
            let of = |build: &str| {
                let cell = format!("leaf_build_id: \"{build}\"");
                rows.iter().filter(|row| row.contains(&cell)).collect::<Vec<_>>()
            };
            assert_eq!((of(&one).len(), of(&other).len(), rows.len()), (1, 1, 2), "{name}: {rows:?}");
            let is_of = |row: &str, host| name == "6.parquet" || row.contains(&format!("host: \"{host}\""));
            assert!(is_of(of(&one)[0], "a") && is_of(of(&other)[0], "b"), "{name}: {rows:?}");
        }
    }
}

#[test]
fn lost_samples_count_once_and_on_their_machine() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let build = "ab".repeat(20);
    fs::write(at("p.otlp.json"), of_machines(&[("a", &build, 2), ("b", &build, 5)]).to_string()).unwrap();
    stdout(&["export", "-q", "-o", at("again.otlp").to_str().unwrap()], &[&at("p.otlp.json")]);
    for name in ["p.otlp.json", "again.otlp"] {
        let set = at(&format!("set of {name}"));
        stdout(&["export", "-q", "--to", "parquet", "--partition", "-o", set.to_str().unwrap()], &[&at(name)]);
        let entries = files_below(&set.join("recordings")).into_keys();
        let rows: Vec<_> = entries.flat_map(|entry| rows_of(&set.join("recordings").join(entry))).collect();
        let of = |host: &str, lost: u64| {
            let cells = [format!("host: \"{host}\""), format!("lost: {lost}")];
            rows.iter().filter(|row| cells.iter().all(|cell| row.contains(cell))).count()
        };
        assert_eq!((of("a", 2), of("b", 5), rows.len()), (1, 1, 2), "{name}: {rows:?}");
    }
}

#[test]
fn no_attribute_of_opentelemetry_is_there_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (input, table) = (fixture("php-recording").join("perf.data.zst"), dir.path().join("t.parquet"));
    let labels = ["process.pid=7", "process.command_args=x", "thread.name=y", "cpu.logical_number=3"];
    let labels = labels.iter().flat_map(|label| ["--label", label]).collect::<Vec<_>>();
    stdout(&[&["export", "-q", "-o", table.to_str().unwrap()], &labels[..]].concat(), &[&input]);
    for (options, input) in [(&labels[..], &input), (&[], &table)] {
        let text = stdout(&[&["export", "-q", "--to", "otlp-json"], options].concat(), &[input]);
        let message = json(text.split(|byte| *byte == b'\n').next().unwrap());
        let keys = |list: &Value, key: &str| -> Vec<String> {
            list.as_array().unwrap().iter().map(|one| one[key].to_string()).collect()
        };
        let is_distinct = |keys: &[String]| keys.iter().collect::<BTreeSet<_>>().len() == keys.len();
        for resource in message["resourceProfiles"].as_array().unwrap() {
            let own = &resource["resource"]["attributes"];
            assert!(is_distinct(&keys(own, "key")), "{own}");
            let pid = own.as_array().unwrap().iter().find(|one| one["key"] == "process.pid").unwrap();
            assert_eq!(pid["value"]["intValue"], "7");
            let profiles = resource["scopeProfiles"].as_array().unwrap().iter();
            let profiles = profiles.flat_map(|scope| scope["profiles"].as_array().unwrap());
            for sample in profiles.flat_map(|profile| profile["samples"].as_array().unwrap()) {
                let places = sample["attributeIndices"].as_array().unwrap().iter().map(|at| at.as_u64().unwrap());
                let all = places.map(|at| &message["dictionary"]["attributeTable"][at as usize]);
                let keys: Vec<_> = all.map(|one| one["keyStrindex"].to_string()).collect();
                assert!(is_distinct(&keys), "{sample}");
            }
        }
    }
}

#[test]
fn a_day_that_was_given_stays_with_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("t.folded"), "a;b 1\n").unwrap();
    let options = ["export", "-q", "--to", "parquet", "--partition", "--day", "2026-11-22"];
    stdout(&[&options[..], &["-o", at("set").to_str().unwrap()]].concat(), &[&at("t.folded")]);
    let file = files_below(&at("set/samples")).into_keys().next().unwrap();
    stdout(&["export", "-q", "-o", at("again.parquet").to_str().unwrap()], &[&at("set/samples").join(file)]);
    let rows = rows_of(&at("again.parquet"));
    assert!(rows.len() == 1 && rows[0].contains("day: 2026-11-22"), "{rows:?}");
}
