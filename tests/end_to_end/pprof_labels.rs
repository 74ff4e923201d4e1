//! Labels and values of pprof samples, through `export` and `merge`: text, numbers, units.

use crate::support;

use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use support::protobuf::{Field, Value, all, encode, number, parse};
use support::runner::jitgraft;

/// A label: its key, its text (empty for a number), its number and the number's unit.
type Label = (&'static str, &'static str, i64, &'static str);

/// The strings of a file that is being written.
struct Strings(Vec<String>);

impl Strings {
    fn index(&mut self, text: &str) -> Value {
        let found = self.0.iter().position(|known| known == text);
        let index = found.unwrap_or_else(|| {
            self.0.push(text.to_owned());
            self.0.len() - 1
        });
        Value::Number(index as u64)
    }
}

/// A profile of one function with the value types `cpu/nanoseconds`; each sample has labels and values.
fn profile(samples: &[(&[Label], &[u64])]) -> Vec<u8> {
    let mut strings = Strings(vec![String::new()]);
    let message = |fields: &[Field]| Value::Bytes(encode(fields));
    let mut fields = vec![(1, message(&[(1, strings.index("cpu")), (2, strings.index("nanoseconds"))]))];
    for (labels, values) in samples {
        let mut sample = vec![(1, Value::Number(1))];
        sample.extend(values.iter().map(|value| (2, Value::Number(*value))));
        for &(key, text, number, unit) in *labels {
            let mut label = vec![(1, strings.index(key))];
            match text {
                "" => label.extend([(3, Value::Number(number as u64)), (4, strings.index(unit))]),
                text => label.push((2, strings.index(text))),
            }
            sample.push((3, message(&label)));
        }
        fields.push((2, message(&sample)));
    }
    fields.push((4, message(&[(1, Value::Number(1)), (4, message(&[(1, Value::Number(1))]))])));
    fields.push((5, message(&[(1, Value::Number(1)), (2, strings.index("f"))])));
    fields.extend(strings.0.iter().map(|text| (6, Value::Bytes(text.clone().into_bytes()))));
    encode(&fields)
}

/// The sum of the first values, by the labels of the samples.
fn sums(path: &Path) -> BTreeMap<Vec<(String, String, i64, String)>, u64> {
    let mut bytes = Vec::new();
    GzDecoder::new(fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let profile = parse(&bytes);
    let strings: Vec<String> = all(&profile, 6).map(|text| String::from_utf8(text.to_vec()).unwrap()).collect();
    let mut sums = BTreeMap::new();
    for sample in all(&profile, 2).map(parse) {
        let mut labels = Vec::new();
        for label in all(&sample, 3).map(parse) {
            let text = |field| strings[number(&label, field) as usize].clone();
            labels.push((text(1), text(2), number(&label, 3) as i64, text(4)));
        }
        labels.sort_unstable();
        // The values are packed.
        let value = u64::from(all(&sample, 2).next().unwrap()[0]);
        *sums.entry(labels).or_insert(0) += value;
    }
    sums
}

fn expected(samples: &[(&[Label], u64)]) -> BTreeMap<Vec<(String, String, i64, String)>, u64> {
    let mut sums = BTreeMap::new();
    for (labels, value) in samples {
        let mut labels: Vec<_> = labels
            .iter()
            .map(|&(key, text, number, unit)| (key.to_owned(), text.to_owned(), number, unit.to_owned()))
            .collect();
        labels.sort_unstable();
        *sums.entry(labels).or_insert(0) += value;
    }
    sums
}

const TEXT: &[Label] = &[("request", "/a", 0, ""), ("tenant", "x", 0, "")];
const NUMBERS: &[Label] = &[("bytes", "", 6144, "bytes"), ("retries", "", 0, ""), ("offset", "", -3, "")];
const OTHER_SIZE: &[Label] = &[("bytes", "", 512, "bytes"), ("retries", "", 0, ""), ("offset", "", -3, "")];
const OURS: &[Label] = &[("pid", "", 7, ""), ("tid", "", 8, ""), ("thread", "worker", 0, ""), ("zone", "b", 0, "")];
const DIGITS: &[Label] = &[("build", "0042", 0, "")];

#[test]
fn labels_are_kept_as_text_and_as_numbers_with_units() {
    let dir = tempfile::tempdir().unwrap();
    let samples = [(TEXT, 1), (NUMBERS, 2), (OTHER_SIZE, 4), (OURS, 8), (DIGITS, 16), (&[][..], 32), (TEXT, 64)];
    let values = samples.map(|(_, value)| [value]);
    let with_values: Vec<_> = samples.iter().zip(&values).map(|((labels, _), value)| (*labels, &value[..])).collect();
    let [input, out] = ["in.pb", "out.pb.gz"].map(|name| dir.path().join(name));
    fs::write(&input, profile(&with_values)).unwrap();
    let out_name = out.to_str().unwrap();
    for threads in ["1", "3"] {
        let output = jitgraft(&["export", "--strict", "--threads", threads, "--to", "pprof", "-o", out_name], &input);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(sums(&out), expected(&samples));
    }
    // Merged, process and thread are gone, as are those of all formats: other machines have the same IDs.
    let merged = jitgraft(&["merge", "--strict", "-o", out_name, input.to_str().unwrap()], &input);
    assert!(merged.status.success(), "{}", String::from_utf8_lossy(&merged.stderr));
    let of_thread: &[Label] = &[("thread", "worker", 0, ""), ("zone", "b", 0, "")];
    let twice = samples.map(|(labels, value)| (if labels == OURS { of_thread } else { labels }, 2 * value));
    assert_eq!(sums(&out), expected(&twice));
}

#[test]
fn times_in_labels_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let [input, out, firefox] = ["in.pb", "out.pb.gz", "out.firefox.json"].map(|name| dir.path().join(name));
    let start = 1_700_000_000_000_000_000;
    for (key, unit, scale) in
        [("end_timestamp_ns", "", 1), ("timestamp", "microseconds", 1000), ("time", "nanoseconds", 1)]
    {
        let times = [100, 100, 250, 900].map(|time| [(key, "", (start + 1000 * time) / scale, unit)]);
        let samples: Vec<(&[Label], &[u64])> = times.iter().map(|time| (&time[..], &[7][..])).collect();
        fs::write(&input, profile(&samples)).unwrap();
        let to = ["export", "--strict", "-q", "--to", "pprof", "-o", out.to_str().unwrap()];
        assert!(jitgraft(&to, &input).status.success());
        // Samples of one time and stack are one.
        let kept: Vec<(&[Label], u64)> =
            times[1..].iter().zip([14, 7, 7]).map(|(time, sum)| (&time[..], sum)).collect();
        assert_eq!(sums(&out), expected(&kept));
        assert!(jitgraft(&["export", "-q", "-o", firefox.to_str().unwrap()], &out).status.success());
        let firefox: serde_json::Value = serde_json::from_slice(&fs::read(&firefox).unwrap()).unwrap();
        let times = firefox["threads"][0]["samples"]["time"].as_array().unwrap();
        let times: Vec<f64> = times.iter().map(|time| time.as_f64().unwrap()).collect();
        assert_eq!((times.len(), times[times.len() - 1] - times[0]), (3, 0.8), "{key}");
    }
}

#[test]
fn what_labels_cannot_say_is_counted_or_said_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let [input, out] = ["in.pb", "out.pb.gz"].map(|name| dir.path().join(name));
    // A key with two units, and a key with two values.
    let kilobytes: &[Label] = &[("bytes", "", 6, "kilobytes")];
    let twice: &[Label] = &[("tag", "a", 0, ""), ("tag", "b", 0, "")];
    fs::write(&input, profile(&[(NUMBERS, &[1]), (kilobytes, &[2]), (twice, &[4])])).unwrap();
    let args = ["export", "--strict", "--to", "pprof", "-o", out.to_str().unwrap()];
    let output = jitgraft(&args, &input);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("1 label skipped: a sample has several labels 'tag'"), "{said}");
    jitgraft(&["export", "--to", "pprof", "-o", out.to_str().unwrap()], &input);
    let (text, first): (&[Label], &[Label]) = (&[("bytes", "6 kilobytes", 0, "")], &[("tag", "a", 0, "")]);
    assert_eq!(sums(&out), expected(&[(NUMBERS, 1), (text, 2), (first, 4)]));
    // Reports need no labels.
    assert!(jitgraft(&["report", "--strict"], &input).status.success());
}

#[test]
fn values_without_a_type_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.pb");
    for (values, fits) in [(&[1][..], true), (&[1, 2], false), (&[1, 2, 3], false), (&[], false)] {
        fs::write(&input, profile(&[(&[], &[5]), (&[], values)])).unwrap();
        let output = jitgraft(&["report", "--strict"], &input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), fits, "{values:?}: {said}");
        assert_eq!(
            said.contains("1 sample with more or fewer values than the profile's 1 value type"),
            !fits,
            "{said}"
        );
    }
}
