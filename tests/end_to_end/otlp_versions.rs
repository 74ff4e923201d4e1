//! Protocols of OpenTelemetry's profiles before 1.10 are recognized, and refused by name.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn jitgraft(args: &[&str], input: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).arg(input).output().unwrap()
}

/// A message of one profile; its sample has these fields. Of the dictionary there are two strings and two attributes.
fn message(sample: &[u8]) -> Vec<u8> {
    let field = |tag: u8, bytes: &[u8]| [&[tag << 3 | 2, bytes.len() as u8], bytes].concat();
    let profile = [field(1, &[0x08, 1, 0x10, 1]), field(2, sample)].concat();
    let resource = field(2, &field(2, &profile));
    let strings = [field(5, b""), field(5, b"cpu")].concat();
    let tables = [field(1, b""), strings, field(6, b""), field(6, &[0x08, 1]), field(7, b""), field(7, b"")].concat();
    [field(1, &resource), field(2, &tables)].concat()
}

#[test]
fn older_protocols_are_refused_by_version() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(dir.path().join(name), bytes).unwrap();
        dir.path().join(name)
    };
    let inputs = [
        (fixture("otlp-1.7/input.otlp"), "protocol 1.7,"),
        (fixture("otlp-1.7/input.jsonl"), "protocol 1.7 or 1.8,"),
        (fixture("otlp-1.9/input.otlp"), "protocol 1.8 or 1.9,"),
        // A range of locations and their number, then a value.
        (write("range.otlp", &message(&[0x08, 1, 0x10, 1, 0x1a, 1, 7])), "protocol 1.7,"),
        // A stack and a value; the same with an attribute.
        (write("value.otlp", &message(&[0x08, 1, 0x12, 1, 7])), "protocol 1.8 or 1.9,"),
        (write("attribute.otlp", &message(&[0x08, 1, 0x12, 1, 1, 0x1a, 1, 1])), "protocol 1.8 or 1.9,"),
        (
            write(
                "1.8.otlp.json",
                br#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sample":[{"stackIndex":1,"values":["1"]}]}]}]}],
                    "dictionary":{"stringTable":["","cpu"],"stackTable":[{},{}]}}"#,
            ),
            "protocol 1.7 or 1.8,",
        ),
    ];
    for (input, version) in inputs {
        let commands: &[&[&str]] = match input.to_str().unwrap().contains("json") {
            true => &[&["report"], &["collapse"], &["export", "--to", "pprof", "-o", "/dev/null"]],
            false => &[&["report"], &["collapse"], &["inject", "-o", "/dev/null", "-i"]],
        };
        for command in commands {
            let output = jitgraft(command, &input);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{}: {said}", input.display());
            assert!(said.contains(version) && said.contains("1.10 or later"), "{}: {said}", input.display());
        }
    }
    // The protocol that is read: a stack and a value.
    let output = jitgraft(&["collapse", "-q"], &write("new.otlp", &message(&[0x08, 1, 0x22, 1, 7])));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn an_old_message_among_new_ones_is_skipped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let behind = |message: &[u8]| [&(message.len() as u32).to_be_bytes()[..], message].concat();
    let new = std::fs::read(fixture("otlp-1.11/input.otlp")).unwrap();
    let old = std::fs::read(fixture("otlp-1.7/input.otlp")).unwrap();
    let path = dir.path().join("both");
    std::fs::write(&path, [behind(&new), behind(&old), behind(&new)].concat()).unwrap();
    let folded = |input: &Path| {
        let output = jitgraft(&["collapse"], input);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let text = String::from_utf8(output.stdout).unwrap();
        (text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum::<u64>(), said)
    };
    let (sum, said) = folded(&path);
    assert_eq!(sum, 2 * folded(&fixture("otlp-1.11/input.otlp")).0);
    assert!(said.contains("1 message skipped"), "{said}");
    assert_eq!(jitgraft(&["collapse", "--strict"], &path).status.code(), Some(1));
}
