//! Compares our perf.data reader with linux-perf-data and linux-perf-event-reader on a real recording.

use crate::error::Warnings;
use crate::formats::perf_data::{Recording, kind};
use linux_perf_data::linux_perf_event_reader::EventRecord;
use linux_perf_data::{Feature, PerfFileReader, PerfFileRecord};
use std::io::Cursor;

/// Time, process, thread, ip, period, call chain.
type Seen = (Option<u64>, Option<i32>, Option<i32>, Option<u64>, Option<u64>, Vec<u64>);

fn by_crates(bytes: &[u8]) -> Vec<Seen> {
    let PerfFileReader { mut perf_file, mut record_iter } = PerfFileReader::parse_file(Cursor::new(bytes)).unwrap();
    let mut seen = Vec::new();
    while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
        let PerfFileRecord::EventRecord { record, .. } = record else { continue };
        let Ok(EventRecord::Sample(sample)) = record.parse() else { continue };
        let chain = sample.callchain.map(|chain| (0..chain.len()).filter_map(|at| chain.get(at)).collect());
        let chain: Vec<u64> = chain.unwrap_or_default();
        seen.push((sample.timestamp, sample.pid, sample.tid, sample.ip, sample.period, chain));
    }
    seen
}

fn by_us(bytes: &[u8]) -> Vec<Seen> {
    let mut warnings = Warnings::new();
    let recording = Recording::parse(bytes, &mut warnings).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let samples = recording.records(bytes).filter(|record| record.kind == kind::SAMPLE);
    let seen = samples.map(|record| {
        let sample = recording.sample(&record).unwrap();
        let (pid, tid) = sample.pid_tid.map(|(pid, tid)| (pid.0, tid.0)).unzip();
        let chain = sample.callchain.iter().collect();
        (sample.time.map(|time| time.0), pid, tid, sample.ip.map(|ip| ip.0), sample.period, chain)
    });
    seen.collect()
}

fn recording() -> Vec<u8> {
    let packed = std::fs::File::open("fixtures/php-recording/perf.data.zst").unwrap();
    zstd::decode_all(packed).unwrap()
}

#[test]
fn the_same_features_and_events_are_seen() {
    let bytes = recording();
    let PerfFileReader { perf_file: theirs, .. } = PerfFileReader::parse_file(Cursor::new(&bytes)).unwrap();
    let ours = Recording::parse(&bytes, &mut Warnings::new()).unwrap();
    let listed: Vec<_> = theirs.features().iter().collect();
    assert!(listed.len() > 5, "{listed:?}");
    assert_eq!(ours.features.keys().copied().collect::<Vec<_>>(), listed);
    for (feature, section) in &ours.features {
        assert_eq!(theirs.feature_section_data(*feature).unwrap(), section.bytes, "{feature}");
    }
    let release = ours.features[&Feature::OSRELEASE].string(ours.header.endian).unwrap();
    assert_eq!(theirs.os_release().unwrap(), Some(std::str::from_utf8(release).unwrap()));
    let theirs = theirs.event_attributes().iter().map(|event| (event.name().unwrap().to_owned(), event.ids().to_vec()));
    let ours = ours.events.iter().map(|event| (event.name.clone(), event.ids.clone()));
    assert_eq!(ours.collect::<Vec<_>>(), theirs.collect::<Vec<_>>());
}

#[test]
fn the_same_samples_are_seen() {
    let bytes = recording();
    let (mut theirs, mut ours) = (by_crates(&bytes), by_us(&bytes));
    assert!(ours.len() > 100, "only {} samples", ours.len());
    // The crates sort records by time.
    theirs.sort();
    ours.sort();
    assert_eq!(ours, theirs);
}
