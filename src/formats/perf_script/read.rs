//! perf script's text as stacks.

use super::frame::{Frame, Place, UNKNOWN};
use super::header::Header;
use super::known::{Known, is_record_line};
use crate::error::{Error, Result, Skipped, Warnings};
use crate::formats::format::ReadOptions;
use crate::model::backing::Backing;
use crate::model::java_calls;
use crate::model::runtimes::{RuntimeSet, Tiers};
use crate::model::stacks::{self, FrameKind, Profile, Row, Track, Unit};
use crate::model::{Nanos, Pid};

/// Reads a text. Each event is a series; a sample without a period weighs 1, as with inferno-collapse-perf.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut reader = TextReader {
        profile: Profile::keeping(options.keep),
        tiers: Tiers::default(),
        known: Known::default(),
        sample: None,
        skipped: Skipped::new("line"),
    };
    reader.profile.perf_names = true;
    let mut at = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        reader.line(line.trim_ascii_end(), at);
        at += line.len() as u64;
    }
    reader.end_sample();
    warnings.extend(reader.skipped.into_warning());
    Ok(reader.profile)
}

struct TextReader {
    profile: Profile,
    tiers: Tiers,
    known: Known,
    sample: Option<OpenSample>,
    skipped: Skipped,
}

/// A sample whose frames are being read.
struct OpenSample {
    event: String,
    track: Track,
    weight: u64,
    unit: Unit,
    time: Option<Nanos>,
    /// Leaf first, as printed.
    frames: Vec<stacks::FrameId>,
}

impl TextReader {
    fn line(&mut self, line: &[u8], at: u64) {
        if line.is_empty() {
            self.end_sample();
        } else if line.starts_with(b"\t") {
            self.frame_line(line, at);
        } else if is_record_line(line) {
            self.known.apply(line);
        } else if let Some(header) = Header::parse(line).filter(|header| header.event().is_some()) {
            self.end_sample();
            self.begin_sample(&header);
        } else if let Some(source) = line.strip_prefix(b"  ").filter(|_| self.sample.is_some()) {
            self.source_line(source);
        } else if !line.starts_with(b"#") {
            self.skipped.add(Error::new("neither a sample's first line nor a frame").at(at));
        }
    }

    fn begin_sample(&mut self, header: &Header<'_>) {
        let of_thread = |tid| self.known.process_of(tid);
        let pid = header.pid.or_else(|| header.tid.and_then(of_thread)).or(header.tid.map(|tid| Pid(tid.0)));
        let track = Track { comm: header.comm.to_vec(), pid, tid: header.tid, cpu: None };
        let event = String::from_utf8_lossy(header.event().unwrap_or_default()).into_owned();
        let unit = header.period().map_or(Unit::Samples, |_| Unit::of_event(&event));
        let weight = header.period().unwrap_or(1);
        let mut sample = OpenSample { event, track, weight, unit, time: header.time, frames: Vec::new() };
        // One-line samples have their frame behind the event.
        let behind = header.event().and_then(|event| {
            let start = memchr::memmem::find(header.rest, event)? + event.len() + 1;
            Frame::parse(header.rest.get(start..)?)
        });
        if let Some(frame) = behind {
            self.push(&frame, &mut sample.frames);
        }
        self.sample = Some(sample);
    }

    fn frame_line(&mut self, line: &[u8], at: u64) {
        match (Frame::parse(line), self.sample.is_some()) {
            (Some(frame), true) => {
                if let Some(mut sample) = self.sample.take() {
                    self.push(&frame, &mut sample.frames);
                    self.sample = Some(sample);
                }
            }
            (Some(_), false) => self.skipped.add(Error::new("a frame without a sample above it").at(at)),
            (None, _) => self.skipped.add(Error::new("a frame begins with a hexadecimal address").at(at)),
        }
    }

    /// `  file.c:12` tells where the frame above is.
    fn source_line(&mut self, text: &[u8]) {
        let Some(colon) = memchr::memrchr(b':', text) else { return };
        let line = std::str::from_utf8(&text[colon + 1..]).ok().and_then(|line| line.parse().ok());
        let last = self.sample.as_mut().and_then(|sample| sample.frames.last_mut());
        if let (Some(line), Some(last)) = (line, last) {
            let file = self.profile.name(&text[..colon]);
            let frame = stacks::Frame { file: Some(file), line, ..*self.profile.frame_of(*last) };
            *last = self.profile.frame(frame);
        }
    }

    /// A line's frame, behind those that its name tells of to have been expanded in it.
    fn push(&mut self, frame: &Frame<'_>, frames: &mut Vec<stacks::FrameId>) {
        let calls = Some(frame)
            .filter(|frame| kind(frame) == FrameKind::Jit)
            .and_then(|frame| java_calls::joined(frame.symbol));
        let Some(calls) = calls else { return frames.push(self.frame(frame)) };
        for symbol in calls.expanded.iter().rev() {
            frames.push(self.frame(&Frame { symbol, inlined: true, ..*frame }));
        }
        frames.push(self.frame(&Frame { symbol: calls.root, ..*frame }));
    }

    fn frame(&mut self, frame: &Frame<'_>) -> stacks::FrameId {
        let name = self.profile.name(frame.symbol);
        let dso = frame.dso.filter(|dso| *dso != UNKNOWN);
        let module = dso.map(|dso| self.profile.name(dso));
        let kind = match kind(frame) {
            // As of recordings: what was expanded in JIT code is JIT code.
            kind if !frame.inlined || kind == FrameKind::Jit => kind,
            _ => FrameKind::Inlined,
        };
        // The address decides nothing once the function is known; kept, it would tell equal stacks apart.
        let addr = (frame.symbol == UNKNOWN).then_some(frame.addr);
        // A text does not tell what its processes run.
        let jit = kind == FrameKind::Jit;
        let tier = jit.then(|| self.tiers.of(name, frame.symbol, RuntimeSet::default())).flatten();
        let joined = frame.inlined && kind == FrameKind::Jit;
        self.profile.frame(stacks::Frame { module, addr, tier, joined, ..stacks::Frame::new(name, kind) })
    }

    fn end_sample(&mut self) {
        let Some(sample) = self.sample.take() else { return };
        let track = self.profile.track(sample.track);
        let mut stack = None;
        for frame in sample.frames.into_iter().rev() {
            stack = Some(self.profile.stack(stack, frame));
        }
        let row = Row { track, stack, weight: sample.weight, count: 1, time: sample.time };
        let series = self.profile.series_named(&sample.event, sample.unit);
        self.profile.push(series, row);
    }
}

fn kind(frame: &Frame<'_>) -> FrameKind {
    // Whatever code it was expanded in, it is a Java method.
    if frame.inlined && java_calls::is_method(frame.symbol) {
        return FrameKind::Jit;
    }
    let Some(dso) = frame.dso.filter(|dso| *dso != UNKNOWN) else {
        return if frame.symbol == UNKNOWN { FrameKind::Unknown } else { FrameKind::User };
    };
    let anonymous = matches!(Place::of(Some(dso)), Place::Anonymous(_) | Place::FileBacked);
    match () {
        () if anonymous && frame.symbol != UNKNOWN => FrameKind::Jit,
        () if anonymous => FrameKind::Unknown,
        () if Backing::of(dso).is_kernel_object() => FrameKind::Kernel,
        () => FrameKind::User,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::backing::tests::those;
    use crate::model::tier::Tier;

    #[test]
    fn every_sort_of_object_has_its_kind_of_code() {
        let of = |kind_of: FrameKind| {
            those(|path| {
                kind(&Frame { addr: 1, symbol: b"f", offset: None, dso: Some(path), inlined: false }) == kind_of
            })
        };
        let kernel = ["[uprobes]", "[guest.kernel.kallsyms]", "[ext4]", "/lib/modules/6.1/kernel/fs/ext4.ko"];
        assert_eq!(of(FrameKind::Kernel), kernel);
        let user = [
            "",
            "//toolong",
            "anon_inode:[perf_event]",
            "[vdso]",
            "[vdso32]",
            "[vsyscall]",
            "[kernel.kallsyms]_text",
            "/usr/bin/node",
            "/usr/lib/libc.so.6 (deleted)",
            "/dev/shm/code",
            "/tmp/jit-77.dump",
            "/usr/lib/jit-helper.so",
            "/x/core.dump",
            "file",
            "[unknown]",
        ];
        assert_eq!(of(FrameKind::User), user);
    }

    fn read_text(text: &str) -> (Profile, Vec<String>) {
        let mut warnings = Warnings::new();
        let profile = read(text.as_bytes(), &ReadOptions::default(), &mut warnings).unwrap();
        let said = warnings.iter().map(ToString::to_string).collect();
        (profile, said)
    }

    fn folded(profile: &Profile, series: usize) -> Vec<String> {
        let spelled = |row: &Row| {
            let name = |id| String::from_utf8_lossy(profile.name_of(profile.frame_of(id).name)).into_owned();
            let mut names: Vec<_> = profile.frames_up(row.stack).map(name).collect();
            names.reverse();
            format!("{} {}", names.join(";"), row.weight)
        };
        profile.series[series].rows.iter().map(spelled).collect()
    }

    #[test]
    fn samples_of_two_events_with_and_without_stacks() {
        let (profile, said) = read_text(
            "# ========\nswapper 0 0.000000: PERF_RECORD_COMM: java:5/6\n\
             java 6 1.000002:    10 cycles:u: \n\t 7f1 leaf+0x1 (/tmp/perf-5.map)\n\t 7f2 main+0x1 (/bin/x)\n  x.c:3\n\n\
             java 6 1.000003: faults:  ffffffff8168bb05 fault+0x1 ([kernel.kallsyms])\n\
             java 6 1.000004:    10 cycles:u: \r\n\t 7f2 main+0x1 (/bin/x)\r\n\r\n",
        );
        assert!(said.is_empty(), "{said:?}");
        assert_eq!(folded(&profile, 0), ["main;leaf 10", "main 10"]);
        assert_eq!(folded(&profile, 1), ["fault 1"]);
        let row = profile.series[0].rows[0];
        assert_eq!(profile.track_of(row.track).pid, Some(Pid(5)));
        let frames: Vec<_> = profile.frames_up(row.stack).map(|id| *profile.frame_of(id)).collect();
        assert_eq!((frames[0].kind, frames[1].line), (FrameKind::Jit, 3));
        let kernel = profile.frames_up(profile.series[1].rows[0].stack).next().unwrap();
        assert_eq!(profile.frame_of(kernel).kind, FrameKind::Kernel);
    }

    #[test]
    fn only_jit_code_has_a_tier_and_only_where_its_name_tells() {
        let (profile, _) = read_text(
            "node 6 1.000002: cycles: \n\t 7f1 JS:*f /a.js:1:1+0x1 (/tmp/perf-5.map)\n\t 7f2 JS:^f /a.js:1:1+0x1 (/bin/x)\n\
             \t 7f3 f+0x1 (/tmp/perf-5.map)\n\t 7f4 JS:~g /a.js:9:1+0x1 (/x/jitted-5-3.so)\n\n",
        );
        let tiers: Vec<_> =
            profile.frames_up(profile.series[0].rows[0].stack).map(|id| profile.frame_of(id).tier).collect();
        assert_eq!(tiers, [Some(Tier::Optimised), None, None, Some(Tier::Interpreted)]);
    }

    #[test]
    fn noise_is_counted_with_its_first_place() {
        let (profile, said) = read_text("\t 7f1 lost (x)\nj 6 1.000002: cycles: \n\t zzz\n\t 7f1 kept (x)\n");
        assert_eq!(folded(&profile, 0), ["kept 1"]);
        assert_eq!(said, ["at byte 0x0: 2 lines skipped, the first here: a frame without a sample above it"]);
    }
}
