//! Counts frames in BPF programs. These frames always have names, but the recording contains the programs' machine code
//! and source lines only if perf requested them from the kernel.

use crate::analysis::quantity::counted;
use crate::pipeline::recording::Examined;
use crate::symbolize::Location;
use crate::symbolize::dso::DsoKind;

/// Counts of the samples' frames in BPF programs, and of those for which the recording has code or source lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BpfFrames {
    pub(super) all: u64,
    /// The number of frames in programs whose machine code is in the recording.
    pub(super) with_code: u64,
    /// The number of frames for whose address the recording has a source line.
    pub(super) with_lines: u64,
}

/// The prefix that the kernel gives to the symbols of BPF programs. The symbols of BPF trampolines have other prefixes;
/// their code and lines are never recorded.
const PROGRAM: &[u8] = b"bpf_prog_";

impl BpfFrames {
    /// Counts the frames in BPF programs over all samples. Each location is examined once, and its counts are added for
    /// every sample that contains it.
    pub(super) fn count(examined: &Examined<'_>) -> Self {
        let samples = examined.samples;
        let places = samples.chains.places();
        let by_place: Vec<Self> = places.iter().map(|place| Self::count_frame(examined, place.location)).collect();
        let mut sum = Self::default();
        for row in &samples.rows {
            // The locations of the sample's frames, innermost first.
            for place in samples.chains.places_up(row.chain) {
                sum.add(by_place[place.0 as usize]);
            }
        }
        sum
    }

    /// A sentence about the frames, for the text output. If the machine code of some programs is missing, it also says
    /// how to record it.
    pub(super) fn sentence(self) -> String {
        let Self { all, with_code, with_lines } = self;
        let extent = if with_code == 0 {
            "without code or source lines".to_owned()
        } else if with_code == all && with_lines == all {
            "with code and source lines".to_owned()
        } else {
            format!("with code for {with_code} of them and source lines for {with_lines}")
        };
        let remedy = if with_code < all {
            ". perf record saves code and source lines of BPF programs if it runs as root, without --no-bpf-event, \
             and writes to a file"
        } else {
            ""
        };
        format!("BPF programs: {}, recorded {extent}{remedy}", counted(all, "frame"))
    }

    /// The counts that one frame at this location adds: all zero if the location isn't in a BPF program.
    fn count_frame(examined: &Examined<'_>, location: Location) -> Self {
        let none = Self::default();
        let Location::File(dso, offset) = location else { return none };
        let dso = examined.resolution.spaces.dsos().get(dso);
        // In recordings, each BPF program is a symbol of the kernel, and `id` is the number of its code, if perf
        // recorded that.
        let DsoKind::KernelSymbol(id) = dso.kind else { return none };
        // Other symbols, such as those of BPF trampolines, are no programs.
        if !dso.path.starts_with(PROGRAM) {
            return none;
        }
        let function = id.and_then(|id| examined.resolution.survey.processes.bpf_functions.get(id.0 as usize));
        let with_code = function.is_some_and(|function| !function.bytes.is_empty());
        let with_lines = function.and_then(|function| function.line_at(offset)).is_some_and(|line| line.line > 0);
        Self { all: 1, with_code: u64::from(with_code), with_lines: u64::from(with_lines) }
    }

    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.with_code += other.with_code;
        self.with_lines += other.with_lines;
    }
}
