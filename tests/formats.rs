//! Walks the table of formats: what holds for every one of them.

use jitgraft::error::Warnings;
use jitgraft::formats::format::{Read, ReadOptions, WriteOptions};
use jitgraft::formats::{FORMATS, detect, named};
use jitgraft::model::stacks::Profile;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

#[test]
fn names_are_unique_words() {
    let mut seen = HashSet::new();
    for format in FORMATS {
        assert!(seen.insert(format.name), "{} twice", format.name);
        assert!(format.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte.is_ascii_digit()));
        assert!(!format.about.is_empty() && !format.about.ends_with('.'), "{}: {}", format.name, format.about);
        assert_eq!(named(format.name).map(|found| found.about), Some(format.about));
        let reads = !matches!(format.read, Read::No);
        assert!(reads || format.write.is_some(), "{} does nothing", format.name);
    }
}

/// The small inputs of all cases, unpacked as they are.
fn inputs() -> Vec<(String, Vec<u8>)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found = Vec::new();
    for folder in fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let is_input = path.file_name().unwrap().to_str().unwrap().starts_with("input.");
            if is_input && fs::metadata(&path).unwrap().len() < 64 << 10 {
                found.push((path.display().to_string(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Reads whatever it is, as far as it can be read without files; a damaged input may be an error, never a panic.
fn read(bytes: &[u8]) {
    let (options, warnings) = (ReadOptions::default(), &mut Warnings::new());
    let _ = match detect(bytes).map(|format| format.read) {
        Some(Read::Stacks(read) | Read::Script(read)) => read(bytes, &options, warnings).map(|_| ()),
        Some(Read::Stream(read)) => read(&mut &bytes[..], &options, warnings).map(|_| ()),
        _ => Ok(()),
    };
}

#[test]
fn cut_and_changed_inputs_do_no_harm() {
    let inputs = inputs();
    assert!(!inputs.is_empty());
    for (name, bytes) in inputs {
        let detected = detect(&bytes).unwrap_or_else(|| panic!("{name} is of no known format"));
        // Some 500 places of each, spread evenly: all of them would take minutes.
        let step = (bytes.len() / 500).max(1);
        for at in (0..bytes.len()).step_by(step) {
            read(&bytes[..at]);
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            read(&changed);
        }
        assert!(!matches!(detected.read, Read::No), "{name}: {} is detected but cannot be read", detected.name);
    }
}

#[test]
fn an_empty_profile_is_written_or_refused_without_a_panic() {
    for format in FORMATS {
        let Some(writer) = format.write else { continue };
        if let Err(error) = (writer.run)(&Profile::new(), &WriteOptions::default(), &mut Vec::new()) {
            assert!(error.to_string().contains("no samples"), "{}: {error}", format.name);
        }
    }
}
