//! Names in which a Java agent joined a method and the calls that were expanded in it are frames of their own wherever
//! frames are shown.

use inferno::collapse::Collapse;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The names in HotSpot's map, and an agent's spelling of them; the last is not a name of Java's.
const RENAMED: [(&str, &str); 3] = [
    (
        "void java.util.TimSort.mergeLo(int, int, int, int)",
        "Ljava/util/TimSort;::sort->Ljava/util/TimSort;::mergeCollapse->Ljava/util/TimSort;::mergeLo",
    ),
    ("int Work.fibonacci(int)", "LWork;::fibonacci in LWork;::main"),
    ("java.lang.Integer[] Work.sorted(int)", "ns::C::operator->"),
];
const MERGE: [&str; 3] =
    ["Ljava/util/TimSort;::sort", "Ljava/util/TimSort;::mergeCollapse", "Ljava/util/TimSort;::mergeLo"];

/// The recording of Java with a map as an agent writes it.
struct Recorded(TempDir);

impl Recorded {
    fn new() -> Self {
        let recorded = Self(tempfile::tempdir().unwrap());
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-java");
        let unpacked = |name: &str| zstd::decode_all(fs::File::open(from.join(name)).unwrap()).unwrap();
        recorded.write("perf.data", &unpacked("perf.data.zst"));
        let mut map = String::from_utf8(unpacked("perf-12611.map.zst")).unwrap();
        for (old, new) in RENAMED {
            assert!(map.contains(old), "{old}");
            map = map.replace(old, new);
        }
        recorded.write("perf-12611.map", map.as_bytes());
        recorded
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.path().join(name), bytes).unwrap();
    }

    fn run(&self, words: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        let output = command.args(words.split(' ')).current_dir(self.0.path()).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Self and total weights of each function, of a table whose names hold no comma.
fn weights(table: &str) -> BTreeMap<String, (u64, u64)> {
    let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let head = cells(table.lines().next().unwrap());
    let place = |name: &str| head.iter().position(|column| column == name).unwrap();
    let (symbol, own, total) = (place("symbol"), place("self"), place("total"));
    let rows = table.lines().skip(1).map(cells).filter(|row| row.len() == head.len() && !row[symbol].starts_with('"'));
    rows.map(|row| (row[symbol].clone(), (row[own].parse().unwrap(), row[total].parse().unwrap()))).collect()
}

#[test]
fn a_report_counts_for_each_of_the_functions() {
    let recorded = Recorded::new();
    let weights = weights(&recorded.run("report --format csv perf.data"));
    let merging = weights[MERGE[2]];
    assert!(merging.0 > 0, "{weights:?}");
    assert_eq!((weights[MERGE[0]].0, weights[MERGE[1]].0), (0, 0));
    assert!(weights[MERGE[0]].1 >= merging.1 && weights[MERGE[1]].1 >= merging.1, "{weights:?}");
    assert!(weights["LWork;::fibonacci"].0 > 0 && weights["LWork;::main"].1 >= weights["LWork;::fibonacci"].1);
    assert!(weights.contains_key("ns::C::operator->"));
    assert!(weights.keys().all(|name| name == "ns::C::operator->" || !name.contains("->") && !name.contains(" in L")));
}

#[test]
fn without_inlined_calls_the_function_that_has_the_code_is_left() {
    let recorded = Recorded::new();
    let with = weights(&recorded.run("report --format csv perf.data"));
    let without = weights(&recorded.run("report --no-inline --format csv perf.data"));
    assert_eq!(without[MERGE[0]].0, with[MERGE[2]].0);
    assert!(!without.contains_key(MERGE[1]) && !without.contains_key(MERGE[2]));
}

#[test]
fn a_text_marks_them_as_inlined_and_is_read_back_to_the_same_stacks() {
    let recorded = Recorded::new();
    let text = recorded.run("script perf.data");
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains(MERGE[2])).unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let [inner, middle, outer] = [0, 1, 2].map(|next| words(lines[at + next]));
    assert_eq!(inner[1..], [MERGE[2], "(inlined)"]);
    assert_eq!(middle[1..], [MERGE[1], "(inlined)"]);
    assert!(outer[1].starts_with(&format!("{}+0x", MERGE[0])) && outer[2] == "(/tmp/perf-12611.map)", "{outer:?}");
    assert_eq!(inner[0], outer[0]);
    recorded.write("text", text.as_bytes());
    assert_eq!(recorded.run("collapse text"), recorded.run("collapse perf.data"));
}

#[test]
fn exports_have_them_as_callers_and_callees() {
    let recorded = Recorded::new();
    recorded.run("export perf.data --jit-names raw -o all.json");
    let all: Value = serde_json::from_slice(&fs::read(recorded.0.path().join("all.json")).unwrap()).unwrap();
    let name = |frame: &Value| all["frames"][frame.as_u64().unwrap() as usize]["name"].as_str().unwrap().to_owned();
    let stacks = all["events"][0]["stacks"].as_array().unwrap();
    let stacks: Vec<Vec<String>> =
        stacks.iter().map(|stack| stack["frames"].as_array().unwrap().iter().map(name).collect()).collect();
    let holds = |wanted: &[&str]| stacks.iter().any(|stack| stack.windows(wanted.len()).any(|some| some == wanted));
    assert!(holds(&MERGE) && holds(&["LWork;::main", "LWork;::fibonacci"]));
    let readable = recorded.run("report --jit-names pretty --format csv perf.data");
    assert!(weights(&readable).contains_key("java.util.TimSort.mergeLo"), "{readable}");
}

#[test]
fn stacks_of_a_text_are_folded_as_inferno_folds_them() {
    let frames = ["void W.run()+0x1", "La/B;::f->La/C;::g(I)V->La/D;::<init>+0x3", "La/E;::plain+0x8"];
    let frames: String = frames.iter().map(|frame| format!("\t 7f1 {frame} (/tmp/perf-5.map)\n")).collect();
    let text = format!("java 6 1.000002: 10 cycles: \n{frames}\n");
    let mut theirs = Vec::new();
    inferno::collapse::perf::Folder::default().collapse(text.as_bytes(), &mut theirs).unwrap();
    let recorded = Recorded::new();
    recorded.write("text", text.as_bytes());
    let ours = recorded.run("collapse text");
    let stack = |folded: &str| folded.trim().rsplit_once(' ').unwrap().0.to_owned();
    // inferno cuts arguments and the L of classes, too: names of JIT code stay whole here.
    let cut = |label: &str| {
        let label = label.strip_prefix('L').filter(|rest| rest.contains('/')).unwrap_or(label);
        let (name, rest) = label.split_once('(').unwrap_or((label, ""));
        format!("{name}{}", if rest.ends_with("_[i]") { "_[i]" } else { "" })
    };
    let cut: Vec<String> = stack(&ours).split(';').map(cut).collect();
    assert_eq!(cut.join(";"), stack(std::str::from_utf8(&theirs).unwrap()));
    assert!(ours.contains("La/B:::f;La/C:::g(I)V_[i];La/D:::<init>_[i];void W.run()"), "{ours}");
}

#[test]
fn inject_leaves_the_map_s_name_like_perf() {
    let recorded = Recorded::new();
    let perf_text = "java 12611 1.000002: 10 cycles: \n\t {:x} [unknown] (/tmp/perf-12611.map)\n\n";
    let map = fs::read_to_string(recorded.0.path().join("perf-12611.map")).unwrap();
    let entry = map.lines().find(|line| line.ends_with(RENAMED[0].1)).unwrap();
    recorded
        .write("text", perf_text.replace("{:x}", entry.trim_start_matches("0x").split(' ').next().unwrap()).as_bytes());
    let named = recorded.run("script --perf-map perf-12611.map text");
    assert!(named.contains(RENAMED[0].1), "{named}");
}
