//! Profiles as tables: what is in the Parquet files that `export` writes for engines, read back by the reader of the
//! `parquet` crate.
#![cfg(feature = "tables")]

use crate::support;

use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::record::Field;
use serde_json::Value;
use sha1::{Digest, Sha1};
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

/// The rows of a table: their cells by column.
type Rows = Vec<BTreeMap<String, Field>>;

/// The table that `export` makes of inputs.
fn table(options: &[&str], inputs: &[&Path]) -> Rows {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    stdout(&[&["export", "-q", "-o", path.to_str().unwrap()], options].concat(), inputs);
    read(&path)
}

fn read(table: &Path) -> Rows {
    let file = SerializedFileReader::new(File::open(table).unwrap()).unwrap();
    file.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns().into_iter().collect()).collect()
}

/// The texts of a column.
fn texts(rows: &Rows, name: &str) -> Vec<Option<String>> {
    let text = |field: &Field| match field {
        Field::Str(text) => Some(text.clone()),
        Field::Null => None,
        other => panic!("{name} is {other:?}"),
    };
    rows.iter().map(|row| text(&row[name])).collect()
}

fn numbers(rows: &Rows, name: &str) -> Vec<Option<i64>> {
    let number = |field: &Field| match field {
        Field::Int(number) => Some(i64::from(*number)),
        Field::Long(number) => Some(*number),
        Field::Null => None,
        other => panic!("{name} is {other:?}"),
    };
    rows.iter().map(|row| number(&row[name])).collect()
}

fn list<'a>(row: &'a BTreeMap<String, Field>, name: &str) -> &'a [Field] {
    match &row[name] {
        Field::ListInternal(list) => list.elements(),
        other => panic!("{name} is {other:?}"),
    }
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

/// The number of frames that have a name depends on which files of the recorded machine this one has.
fn share_that_collapse_says(recording: &Path) -> f64 {
    let run = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("collapse").arg(recording).output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    let words: Vec<&str> = said.split_whitespace().collect();
    let [percent, all] = words
        .windows(5)
        .find_map(|words| match words {
            ["resolved", percent, "of", all, "frames"] => {
                Some([percent.strip_suffix('%').unwrap(), *all].map(|count| count.parse::<f64>().unwrap()))
            }
            _ => None,
        })
        .unwrap_or_else(|| panic!("{said}"));
    assert!(percent < 100.0 && all == 26_874.0, "{said}");
    percent / 100.0
}

#[test]
fn a_row_shows_its_recording_thread_and_what_ran() {
    let rows = table(&[], &[&tiers()]);
    // That of what is in the file, however it is packed.
    let unpacked = zstd::decode_all(File::open(tiers()).unwrap()).unwrap();
    let hash: String = Sha1::digest(unpacked).iter().map(|byte| format!("{byte:02x}")).collect();
    let only = |name: &str| -> Option<String> {
        let all: BTreeSet<_> = texts(&rows, name).into_iter().collect();
        assert_eq!(all.len(), 1, "{name}: {all:?}");
        all.into_iter().next().unwrap()
    };
    assert_eq!(only("input"), Some(hash));
    assert_eq!((only("event").unwrap(), only("unit").unwrap()), ("cpu-clock:u".to_owned(), "nanoseconds".to_owned()));
    assert_eq!(only("comm").unwrap(), "tiers");
    assert_eq!(numbers(&rows, "weight").iter().flatten().sum::<i64>(), 1_881 * 50_000);
    let share = share_that_collapse_says(&tiers());
    for row in &rows {
        let (functions, addresses) = (list(row, "functions"), list(row, "addresses"));
        assert_eq!(functions.len(), addresses.len());
        assert_eq!(row["depth"], Field::Int(functions.len() as i32));
        assert_eq!(functions.last().unwrap_or(&Field::Null), &row["leaf"]);
        assert_eq!(addresses.last().unwrap_or(&Field::Null), &row["leaf_address"]);
        let unnamed = |name: &&Field| matches!(name, Field::Str(name) if name.starts_with('[') && name.ends_with(']'));
        assert_eq!(row["unnamed"], Field::Int(functions.iter().filter(unnamed).count() as i32));
        let Field::Double(told) = row["share_named"] else { panic!("{row:?}") };
        assert!((told - share).abs() < 0.000_501, "{told}");
        assert_eq!(row["time"] == Field::Null, row["start"] == Field::Null);
    }
}

#[test]
fn stretches_of_time_hold_what_was_in_them() {
    let each = table(&[], &[&tiers()]);
    let summed = table(&["--bucket", "10ms", "--detail", "names"], &[&tiers()]);
    let total = |rows: &Rows| {
        let sum = |name: &str| numbers(rows, name).into_iter().flatten().sum::<i64>();
        (sum("weight"), sum("count"))
    };
    assert_eq!(total(&each), total(&summed));
    assert!(summed.len() * 3 < each.len() * 2, "{} of {}", summed.len(), each.len());
    let by_stretch = |rows: &Rows, time: &dyn Fn(i64) -> i64| {
        let mut sums = BTreeMap::<(i64, Option<String>), i64>::new();
        let times = numbers(rows, "time_ns");
        for ((at, leaf), count) in times.into_iter().zip(texts(rows, "leaf")).zip(numbers(rows, "count")) {
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
    assert_eq!(first.len(), 2, "{:?}", first.keys());
    for path in first.keys() {
        let path = path.to_str().unwrap();
        assert!(path.starts_with("samples/host=") && path.contains("/day=") && path.ends_with(".parquet"), "{path}");
    }
    assert!(export("3") == first);
    let some = fleet.join(first.keys().next().unwrap());
    let file = SerializedFileReader::new(File::open(some).unwrap()).unwrap();
    let groups = file.metadata().row_groups();
    let sorted = |group: &RowGroupMetaData| Some(group.sorting_columns()?.first()?.column_idx);
    let leaf = |group: &RowGroupMetaData| {
        group.columns().iter().position(|column| column.column_path().string() == "leaf").map(|leaf| leaf as i32)
    };
    assert!(groups.iter().all(|group| sorted(group).is_some() && sorted(group) == leaf(group)));
    let keys = file.metadata().file_metadata().key_value_metadata().unwrap();
    assert!(keys.iter().any(|key| key.key == "jitgraft.schema" && key.value.as_deref() == Some("3")));
    let fields = file.metadata().file_metadata().schema().get_fields();
    let ids: BTreeSet<i32> = fields.iter().map(|field| field.get_basic_info().id()).collect();
    assert!(fields.iter().all(|field| field.get_basic_info().has_id()) && ids.len() == fields.len());
    let columns: Vec<_> = file.metadata().file_metadata().schema().get_fields().iter().map(|of| of.name()).collect();
    assert!(!columns.contains(&"host") && !columns.contains(&"day") && columns.contains(&"leaf"), "{columns:?}");
}

#[test]
fn groups_of_rows_can_be_left_out_by_what_is_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let (table, samples) = (dir.path().join("t.parquet"), 140_000);
    stdout(&["export", "-o", table.to_str().unwrap()], &[&recorded(dir.path(), samples)]);
    let file = SerializedFileReader::new(File::open(&table).unwrap()).unwrap();
    let groups = file.metadata().row_groups();
    assert_eq!(groups.iter().map(|group| group.num_rows()).collect::<Vec<_>>(), [1 << 17, 140_000 - (1 << 17)]);
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
fn options_for_tables_are_refused_elsewhere() {
    for flag in [&["--bucket", "1s"][..], &["--partition"], &["--detail", "names"]] {
        let said = refused(&[&["export", "--to", "csv"], flag].concat(), &[&tiers()]);
        assert!(said.contains(flag[0]) && said.contains("only works with parquet, not with csv"), "{said}");
    }
    let said = refused(&["export", "--to", "parquet", "--bucket", "0s"], &[&tiers()]);
    assert!(said.contains("must be longer than 0"), "{said}");
    let said = refused(&["export", "--to", "parquet", "--partition"], &[&tiers()]);
    assert!(said.contains("-o DIR"), "{said}");
}

#[test]
fn standard_input_is_a_recording_too() {
    let mut packed = Vec::new();
    File::open(tiers()).unwrap().read_to_end(&mut packed).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
        .args(["export", "--to", "parquet", "--jitdump"])
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
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    fs::write(&path, &output.stdout).unwrap();
    let weights = |rows: Rows| numbers(&rows, "weight").into_iter().flatten().sum::<i64>();
    assert_eq!(weights(read(&path)), weights(table(&[], &[&tiers()])));
}

/// Tables were once read: as an input, each is refused, and the sentence says what reads it.
#[test]
fn tables_and_what_was_done_with_them_are_refused_with_what_replaces_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/tables/version-1.parquet");
    stdout(&["export", "-q", "-o", at("new.parquet").to_str().unwrap()], &[&tiers()]);
    fs::write(at("file.arrow"), b"ARROW1\0\0\xff\xff\xff\xff\xf0\0\0\0\x10\0\0\0").unwrap();
    fs::write(at("stream.arrows"), b"\xff\xff\xff\xff\xf0\x04\0\0\x10\0\0\0\0\0\x0a\0").unwrap();
    for (input, what) in [
        (&old, "a table (Parquet)"),
        (&at("new.parquet"), "a table (Parquet)"),
        (&at("file.arrow"), "a table (Arrow)"),
        (&at("stream.arrows"), "a table (Arrow)"),
    ] {
        for command in ["report", "collapse", "flamegraph", "view", "merge"] {
            let said = refused(&[command], &[input]);
            assert!(
                said.contains(what) && said.contains("DuckDB") && said.contains("docs/sql.md"),
                "{command}: {said}"
            );
        }
    }
    let said = refused(&["export", "--to", "arrow"], &[&tiers()]);
    assert!(said.contains("--to arrow was removed: use --to parquet"), "{said}");
    let said = refused(&["export", "-o", at("x.arrows").to_str().unwrap()], &[&tiers()]);
    assert!(said.contains("no longer writes Arrow streams; instead, use --to parquet"), "{said}");
    let set = at("set");
    let words = ["export", "--to", "parquet", "--partition", "-o", set.to_str().unwrap()];
    let said = refused(&[&words[..], &["--compact"]].concat(), &[&tiers()]);
    assert!(said.contains("--compact was removed: DuckDB"), "{said}");
    // Nobody gets a second copy of what an earlier version packed into one file.
    fs::create_dir_all(set.join("samples/host=h/day=2026-11-22")).unwrap();
    fs::write(set.join("samples/host=h/day=2026-11-22/compact-12ab.parquet"), "PAR1").unwrap();
    let said = refused(&words, &[&tiers()]);
    assert!(said.contains("compact-12ab.parquet: was made by --compact"), "{said}");
}

#[test]
fn a_table_of_several_recordings_has_the_rows_of_each() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let names = ["tiers-recording/perf.data.zst", "php-recording/perf.data.zst", "recording-node/perf.data.zst"];
    let recordings = names.map(fixture);
    let recordings = recordings.each_ref().map(PathBuf::as_path);
    let sorted = |table: &Path| {
        let mut rows = rows_of(table);
        rows.sort();
        rows
    };
    for options in [&["--bucket", "10ms", "--label", "team=a", "--label", "zone=b", "--host", "h"][..], &[]] {
        let export = |from: &[&Path], to: &Path| {
            stdout(&[&["export", "-q", "-o", to.to_str().unwrap()], options].concat(), from);
        };
        export(&recordings, &at("all.parquet"));
        let mut each = Vec::new();
        for recording in recordings {
            export(&[recording], &at("one.parquet"));
            each.extend(rows_of(&at("one.parquet")));
        }
        each.sort();
        let all = sorted(&at("all.parquet"));
        assert!(all.len() > 1_000);
        assert!(all == each, "{options:?}: {:?}", all.iter().zip(&each).find(|(one, two)| one != two));
    }
    // Small ones share a group.
    let file = SerializedFileReader::new(File::open(at("all.parquet")).unwrap()).unwrap();
    assert_eq!(file.metadata().num_row_groups(), 1);
    // A data set has the same rows, in a file for each recording.
    let set = at("set");
    stdout(&["export", "-q", "--to", "parquet", "--partition", "-o", set.to_str().unwrap()], &recordings);
    let files: Vec<_> = files_below(&set).into_keys().collect();
    assert_eq!(files.len(), names.len(), "{files:?}");
    let rows: usize = files.iter().map(|file| rows_of(&set.join(file)).len()).sum();
    assert_eq!(rows, rows_of(&at("all.parquet")).len());
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
    assert!(said.contains("2 of 6 inputs written, 1 identical to others, 3 not read"), "{said}");
    assert_eq!(files_below(&set).len(), 2);
    let before = files_below(&set);
    let (status, said) = export(&["--skip-existing"]);
    assert!(
        status == Some(1) && said.contains("0 of 6 inputs written, 3 already in the data set, 3 not read"),
        "{said}"
    );
    assert!(files_below(&set) == before);
    // Mended and new files are read.
    for bad in ["empty.data", "text.data", "cut.data.zst"] {
        fs::remove_file(input.join(bad)).unwrap();
    }
    fs::write(input.join("text.data"), "main;g 4\n").unwrap();
    let (status, said) = export(&["--skip-existing", "--day", "2026-11-22"]);
    assert!(status == Some(0) && said.contains("1 of 4 inputs written, 3 already in the data set"), "{said}");
    assert_eq!(files_below(&set).keys().filter(|path| path.to_str().unwrap().contains("day=2026-11-22")).count(), 1);
    // Sums are beside samples.
    let (status, said) = export(&["--skip-existing", "--bucket", "10s"]);
    assert!(status == Some(0) && said.contains("3 of 4 inputs written, 1 identical to others"), "{said}");
    assert_eq!(files_below(&set).len(), 6);
    let (status, said) = export(&["--skip-existing", "--bucket", "10s"]);
    assert!(status == Some(0) && said.contains("0 of 4 inputs written, 4 already in the data set"), "{said}");
    // Whoever does not ask to skip writes the same files again.
    let before = files_below(&set);
    let (status, said) = export(&[]);
    assert!(status == Some(0) && said.contains("3 of 4 inputs written, 1 identical to others"), "{said}");
    let after = files_below(&set);
    assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)));
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
    let rows = rows_of(&at("one.parquet"));
    assert_eq!(rows.len(), 2);
    let labels = |row: &&String| row.contains("request") && row.contains("slow") && row.contains("64");
    assert_eq!(rows.iter().filter(labels).count(), 1, "{rows:?}");
    // Other outputs add up what differs in labels alone.
    assert!(String::from_utf8(stdout(&["collapse", "-q"], &[&at("p.pb")])).unwrap().trim_end().ends_with(" 7"));
}

#[test]
fn stacks_have_one_number_in_every_file() {
    let dir = tempfile::tempdir().unwrap();
    let ids = |text: &str, options: &[&str]| {
        let path = dir.path().join("t.folded");
        fs::write(&path, text).unwrap();
        numbers(&table(options, &[&path]), "stack_id").into_iter().flatten().collect::<Vec<_>>()
    };
    let (one, other) = (ids("a;b 1\na;c 2\n", &[]), ids("x 1\na;c 5\n", &["--detail", "names"]));
    assert!(one[0] != one[1] && one[1] == other[0] && one.iter().chain(&other).all(|id| *id > 0), "{one:?} {other:?}");
    // As docs/sql.md states it: SHA-1 of the caller's number, the function, a zero byte and the module.
    let id = |caller: i64, function: &str| {
        let hash = Sha1::digest([&caller.to_be_bytes()[..], function.as_bytes(), b"\0"].concat());
        i64::from_be_bytes(hash[..8].try_into().unwrap()).abs()
    };
    assert_eq!(one, [id(id(0, "a"), "b"), id(id(0, "a"), "c")]);
}

/// Three functions called `get`, two of them on one line, and one without a name. DevTools counts lines and columns
/// from 0.
const GETTERS: &str = r#"{"nodes":[
    {"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1,"columnNumber":-1},"children":[2,3,4,5]},
    {"id":2,"callFrame":{"functionName":"get","url":"a.js","lineNumber":4,"columnNumber":9},
     "positionTicks":[{"line":6,"ticks":2}]},
    {"id":3,"callFrame":{"functionName":"get","url":"a.js","lineNumber":4,"columnNumber":39}},
    {"id":4,"callFrame":{"functionName":"get","url":"b.js","lineNumber":4,"columnNumber":9}},
    {"id":5,"callFrame":{"functionName":"","url":"","lineNumber":-1,"columnNumber":-1}}],
    "startTime":0,"endTime":8000,"samples":[2,2,3,4,4,4,4,5],
    "timeDeltas":[0,1000,1000,1000,1000,1000,1000,1000]}"#;

#[test]
fn functions_of_one_name_are_told_apart_by_where_they_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.cpuprofile");
    fs::write(&path, GETTERS).unwrap();
    for options in [&[][..], &["--detail", "names"], &["--bucket", "1s"]] {
        let rows = table(options, &[&path]);
        let (names, files) = (texts(&rows, "leaf"), texts(&rows, "leaf_start_file"));
        let [lines, columns, weights, ids] =
            ["leaf_start_line", "leaf_start_column", "weight", "stack_id"].map(|name| numbers(&rows, name));
        let mut sums = BTreeMap::new();
        for at in 0..rows.len() {
            let key = (names[at].clone().unwrap(), files[at].clone(), lines[at], columns[at], ids[at].unwrap());
            *sums.entry(key).or_insert(0) += weights[at].unwrap() / 1_000_000;
            for (list_name, leaf_name) in [
                ("start_files", "leaf_start_file"),
                ("start_lines", "leaf_start_line"),
                ("start_columns", "leaf_start_column"),
            ] {
                assert_eq!(list(&rows[at], list_name), [rows[at][leaf_name].clone()]);
            }
        }
        let id = |name: &str, start: &[u8]| {
            let hash = Sha1::digest([&[0; 8], name.as_bytes(), b"\0", start].concat());
            i64::from_be_bytes(hash[..8].try_into().unwrap()).abs()
        };
        let start = |file: &str, line: u32, column: u32| {
            [b"\0", file.as_bytes(), &line.to_be_bytes(), &column.to_be_bytes()].concat()
        };
        let mut expected = BTreeMap::new();
        for (file, column, weight) in [("a.js", 10, 2), ("a.js", 40, 1), ("b.js", 10, 4)] {
            let id = id("get", &start(file, 5, column));
            let key = ("get".to_owned(), Some(file.to_owned()), Some(5), Some(i64::from(column)), id);
            expected.insert(key, weight);
        }
        expected.insert(("(anonymous)".to_owned(), None, None, None, id("(anonymous)", b"")), 1);
        assert_eq!(sums, expected, "{options:?}");
    }
}

/// All attributes of a list of them, as texts.
fn attributes(list: &Value) -> BTreeMap<String, String> {
    let value = |value: &Value| value.as_object().unwrap().values().next().unwrap().clone();
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pair = |one: &Value| (one["key"].as_str().unwrap().to_owned(), text(value(&one["value"])));
    list.as_array().unwrap().iter().map(pair).collect()
}

#[test]
fn opentelemetry_s_resources_are_those_of_each_recording() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let [one, two] = ["tiers-recording", "php-recording"].map(|name| fixture(name).join("perf.data.zst"));
    stdout(&["export", "-q", "-o", &at("one.otlp"), "--host", "a"], &[&one]);
    stdout(&["export", "-q", "-o", &at("two.otlp"), "--host", "b", "--label", "team=x"], &[&two]);
    let each = ["one.otlp", "two.otlp"].map(|name| dir.path().join(name));
    stdout(&["export", "-q", "-o", &at("both.otlp")], &each.each_ref().map(PathBuf::as_path));
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
    // A service is called after its program.
    let of_both = resources(&dir.path().join("both.otlp"), &[]);
    assert_eq!(of_both, wanted([["a", "tiers", ""], ["b", "php8.2", ""]]));
    let given = ["--label", "service.name=shop", "--label", "team=y"];
    for (recording, host) in [(&one, "a"), (&two, "b")] {
        let of_one = resources(recording, &[&given[..], &["--host", host]].concat());
        assert_eq!(of_one, BTreeSet::from([[host, "shop", "y"].map(str::to_owned)]));
    }
    // The clocks of recordings differ: a time of the wall clock is that of its own.
    let times = |inputs: &[&Path]| {
        let mut times: Vec<_> = table(&[], inputs).iter().map(|row| row["time"].to_string()).collect();
        times.sort();
        times
    };
    assert_eq!(times(&[&dir.path().join("both.otlp")]), times(&[&one, &two]));
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
    stdout(&["export", "-q", "-o", at("two.otlp").to_str().unwrap()], &[&at("p.otlp.json")]);
    stdout(&["export", "-q", "-o", at("two.parquet").to_str().unwrap()], &[&at("two.otlp")]);
    check("two.parquet");
    // Each machine has a file of its own, with one name.
    let set = at("set");
    stdout(&["export", "-q", "--to", "parquet", "--partition", "-o", set.to_str().unwrap()], &[&at("p.otlp.json")]);
    assert_eq!(files_below(&set.join("samples")).len(), 2);
    // Other outputs add up what differs in labels alone.
    assert!(String::from_utf8(stdout(&["collapse", "-q"], &[&at("p.otlp.json")])).unwrap().ends_with(" 6\n"));
}

/// A message with one sample of each of these machines, in a mapping of one path that has a build of its own; so many
/// samples were lost there.
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
    let ways =
        [("p.otlp.json", "1.otlp"), ("1.otlp", "2.otlp.json"), ("2.otlp.json", "3.pb.gz"), ("3.pb.gz", "4.pb.gz")];
    for (from, to) in ways {
        stdout(&["export", "-q", "-o", at(to).to_str().unwrap()], &[&at(from)]);
        stdout(&["export", "-q", "-o", at("t.parquet").to_str().unwrap()], &[&at(from)]);
        let rows = rows_of(&at("t.parquet"));
        let of = |build: &str| {
            let cell = format!("leaf_build_id: \"{build}\"");
            rows.iter().filter(|row| row.contains(&cell)).collect::<Vec<_>>()
        };
        assert_eq!((of(&one).len(), of(&other).len(), rows.len()), (1, 1, 2), "{from}: {rows:?}");
        let is_of = |row: &str, host| from == "3.pb.gz" || row.contains(&format!("host: \"{host}\""));
        assert!(is_of(of(&one)[0], "a") && is_of(of(&other)[0], "b"), "{from}: {rows:?}");
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
        let text = stdout(&["export", "-q", "--to", "otlp-json"], &[&at(name)]);
        let mut lost = BTreeMap::new();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            for resource in json(line)["resourceProfiles"].as_array().unwrap() {
                let host = attributes(&resource["resource"]["attributes"])["host.name"].clone();
                for scope in resource["scopeProfiles"].as_array().unwrap() {
                    let of_scope = attributes(&scope["scope"]["attributes"]);
                    let before = lost.insert(host.clone(), of_scope["jitgraft.lost"].clone());
                    assert_eq!(before, None, "{name}");
                }
            }
        }
        let wanted = [("a", "2"), ("b", "5")].map(|(host, lost)| (host.to_owned(), lost.to_owned()));
        assert_eq!(lost, BTreeMap::from(wanted), "{name}");
    }
}

#[test]
fn no_attribute_of_opentelemetry_is_there_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (input, written) = (fixture("php-recording").join("perf.data.zst"), dir.path().join("p.otlp"));
    let labels = ["process.pid=7", "process.command_args=x", "thread.name=y", "cpu.logical_number=3"];
    let labels = labels.iter().flat_map(|label| ["--label", label]).collect::<Vec<_>>();
    stdout(&[&["export", "-q", "-o", written.to_str().unwrap()], &labels[..]].concat(), &[&input]);
    for (options, input) in [(&labels[..], &input), (&[], &written)] {
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
fn a_day_that_was_given_is_that_of_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("t.folded"), "a;b 1\n").unwrap();
    let day = ["--day", "2026-11-22"];
    let options =
        ["export", "-q", "--to", "parquet", "--partition", "-o", at("set").to_str().unwrap()].map(str::to_owned);
    let options: Vec<&str> = options.iter().map(String::as_str).chain(day).collect();
    stdout(&options, &[&at("t.folded")]);
    let file = files_below(&at("set")).into_keys().next().unwrap();
    let directory = "samples/host=__HIVE_DEFAULT_PARTITION__/day=2026-11-22";
    assert_eq!(file.parent().unwrap(), Path::new(directory));
    let rows = table(&day, &[&at("t.folded")]);
    assert!(rows.len() == 1 && rows[0]["day"].to_string().contains("2026-11-22"), "{rows:?}");
}
