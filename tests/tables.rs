//! Profiles as tables: what is in the files that `export` writes for engines, and what the program makes of them again.
#![cfg(feature = "tables")]

#[expect(dead_code, reason = "the writers can do more than these tests need")]
mod support;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::bytes::Order;
use support::perf_data::{Event, Mmap, Mode, PerfData, Stamp};

fn jitgraft(args: &[&str], inputs: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).args(inputs).output().unwrap()
}

/// What it prints; it must succeed.
fn stdout(args: &[&str], inputs: &[&Path]) -> Vec<u8> {
    let output = jitgraft(args, inputs);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// What it says on standard error; it must fail.
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

/// Samples of two events in two threads: so many of the first, a few of the second.
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
                // Of a function that only called, any of its lines is told.
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

/// How many frames have a name depends on which files of the recorded machine this one has.
fn share_that_collapse_says(recording: &Path) -> f64 {
    let run = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("collapse").arg(recording).output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    let words: Vec<&str> = said.split_whitespace().collect();
    let [unnamed, all] = words
        .windows(4)
        .find_map(|words| match words {
            [unnamed, "of", all, "frames"] => Some([unnamed, all].map(|count| count.parse::<f64>().unwrap())),
            _ => None,
        })
        .unwrap_or_else(|| panic!("{said}"));
    assert!(unnamed < all && all == 26_874.0, "{said}");
    1.0 - unnamed / all
}

#[test]
fn a_row_tells_its_recording_thread_and_what_ran() {
    let batches = batches(&stdout(&["export", "--to", "arrow"], &[&tiers()]));
    let hash = Command::new("sha1sum").arg(tiers()).output().unwrap().stdout;
    let hash = String::from_utf8(hash[..40].to_vec()).unwrap();
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
    assert!((share - share_that_collapse_says(&tiers())).abs() < 1e-9, "{share}");
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
        let mut files = BTreeMap::new();
        let mut folders = vec![fleet.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                match entry.is_dir() {
                    true => folders.push(entry),
                    false => {
                        _ = files.insert(entry.strip_prefix(&fleet).unwrap().to_owned(), fs::read(&entry).unwrap())
                    }
                }
            }
        }
        files
    };
    let first = export("1");
    assert_eq!(first.len(), 2, "{:?}", first.keys());
    for path in first.keys() {
        let path = path.to_str().unwrap();
        assert!(path.starts_with("host=") && path.contains("/day=") && path.ends_with(".parquet"), "{path}");
    }
    assert!(export("3") == first);
    let file = SerializedFileReader::new(File::open(fleet.join(first.keys().next().unwrap())).unwrap()).unwrap();
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
fn what_cannot_be_read_is_said_and_the_rest_is_read() {
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
    use jitgraft::error::Warnings;
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
        let profile = parquet::read(bytes, &ReadOptions::default(), &mut Warnings::new()).ok()?;
        Some(profile.series.iter().flat_map(|series| &series.rows).map(|row| row.weight).sum::<u64>())
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
fn what_only_tables_can_do_is_refused_elsewhere() {
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
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables/version-1.parquet");
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
