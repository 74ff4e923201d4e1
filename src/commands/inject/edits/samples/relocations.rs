//! `--relocate`: moves code to addresses where nothing else ever was, so that each image can be mapped once and as a
//! whole, like any library.
//!
//! perf tracks what is mapped at every moment, but other readers don't. hotspot, for example, caches names by file and
//! by distance from the start of the *mapping*, and ignores later mappings. If an image is mapped piece by piece,
//! hotspot shows the names of the pieces that it saw first. So `--relocate` rewrites the instruction pointers, call
//! chains and branches of samples, according to what was at each address at that time. Addresses in files that were
//! mapped a second time (node maps its builtins again, close to its JIT code) are moved to the file's first mapping.

use super::remapped_files::RemappedFiles;
use crate::bytes::cursor::Endian;
use crate::commands::inject::images::JitImages;
use crate::commands::inject::survey::{PlainRecording, SurveyedRecording};
use crate::formats::perf_data::{Edit, RawRecord, Recording, Records, kind};
use crate::model::Addr;
use crate::model::process::CpuMode;
use crate::parallel::Pool;
use crate::symbolize::code_map::{CodeMap, SegmentId};
use crate::symbolize::symbolizer::Symbolizer;
use rustc_hash::FxHashMap;

/// All words of samples that get a new address, in stream order.
#[derive(Debug, Default)]
pub(super) struct Relocations(Vec<Relocation>);

/// An address in a sample's record, and what replaces it.
#[derive(Debug, Clone, Copy)]
struct Relocation {
    /// The offset of the sample's record in the stream.
    record: u64,
    /// The offset of the word in the record.
    word_offset: u32,
    new_address: NewAddress,
}

/// The address that replaces a word of a sample.
#[derive(Debug, Clone, Copy)]
enum NewAddress {
    /// An address `distance` bytes from the start of a code segment, whose new address isn't known yet. The distance
    /// may equal the segment's length, because a return address can point just past a call at the end.
    Code { segment: SegmentId, distance: u64 },
    /// The address of the same byte in the first mapping of its file.
    File(Addr),
}

impl Relocations {
    /// Finds all words to rewrite. If `replacements` has an edit for a sample, the new version of the sample is read,
    /// not the one in the input. `new_recording` has the events of the output, for parsing the samples; `None` if they
    /// are the input's.
    pub(super) fn find(
        survey: &SurveyedRecording<'_>,
        codes: &CodeMap<'_>,
        new_recording: Option<&Recording>,
        replacements: &[Edit],
        pool: &Pool,
    ) -> Self {
        let recording = new_recording.unwrap_or(&survey.input.recording);
        // An edit that removes bytes replaces the record at its offset. An edit that removes nothing only inserts a
        // record there, and doesn't count.
        let replaced: FxHashMap<u64, &Edit> =
            replacements.iter().filter(|edit| edit.remove > 0).map(|edit| (edit.at, edit)).collect();
        let symbolizer = Symbolizer { spaces: &survey.spaces, codes };
        let remapped = &RemappedFiles::new(&survey.first_pass.processes);
        let finder = &RelocationFinder { survey, recording, symbolizer, remapped };
        let find = |records: Records<'_>| {
            let mut found = Vec::new();
            for raw in records.filter(|raw| matches!(raw.kind, kind::SAMPLE | kind::CALLCHAIN_DEFERRED)) {
                let edit = replaced.get(&raw.offset);
                let new_version = edit.and_then(|edit| Records::new(&edit.insert, raw.offset, raw.endian).next());
                finder.add_words(&new_version.unwrap_or(raw), &mut found);
            }
            found
        };
        let mut all = Vec::new();
        pool.each(survey.first_pass.chunks.list().into_iter(), find, |found| all.extend(found));
        Self(all)
    }

    /// Writes the new addresses into the edit that already replaces the record, or into a new edit that replaces the
    /// record by a copy of it. Addresses of code that wasn't selected stay unchanged.
    pub(super) fn apply(&self, input: &PlainRecording<'_>, images: &JitImages<'_, '_>, edits: &mut Vec<Edit>) {
        let replacements = edits.iter().enumerate().filter(|(_, edit)| edit.remove > 0);
        let replacements: FxHashMap<u64, usize> = replacements.map(|(index, edit)| (edit.at, index)).collect();
        // The words to rewrite in one record are next to each other.
        for words in self.0.chunk_by(|a, b| a.record == b.record) {
            let record = words[0].record;
            let index = replacements.get(&record).copied().or_else(|| {
                edits.push(copy_record(input, record)?);
                Some(edits.len() - 1)
            });
            let Some(edit) = index.and_then(|index| edits.get_mut(index)) else { continue };
            for word in words {
                let Some(addr) = word.new_address.resolve(images) else { continue };
                // Overwrite the word's eight bytes in the new version of the record.
                let rest = edit.insert.get_mut(word.word_offset as usize..);
                if let Some(bytes) = rest.and_then(|bytes| bytes.first_chunk_mut()) {
                    *bytes = match input.recording.header.endian {
                        Endian::Little => addr.to_le_bytes(),
                        Endian::Big => addr.to_be_bytes(),
                    };
                }
            }
        }
    }
}

/// What is needed to find out which words of a sample are addresses in JIT code or in a remapped file.
struct RelocationFinder<'a> {
    survey: &'a SurveyedRecording<'a>,
    /// The header and events of the output.
    recording: &'a Recording,
    symbolizer: Symbolizer<'a>,
    remapped: &'a RemappedFiles<'a>,
}

impl RelocationFinder<'_> {
    /// Adds the words to rewrite in one sample or deferred call chain to `found`.
    fn add_words(&self, raw: &RawRecord<'_>, found: &mut Vec<Relocation>) {
        // Damaged samples are not changed. `coverage` counts them.
        let Some(Ok(sample)) = self.recording.chain_sample(raw) else { return };
        let Ok(words) = self.recording.code_addresses(raw) else { return };
        // The code of a process that was injected before isn't in images of this run, so it doesn't move.
        let Some((pid, _)) = sample.pid_tid.filter(|(pid, _)| !self.survey.injected.contains(pid)) else { return };
        for word in words.into_iter().filter(|word| word.mode == CpuMode::User) {
            let addr = word.frame.raw();
            let find_code = |addr| self.symbolizer.locate_address(pid, addr, sample.time, CpuMode::User).answer.code;
            // Like perf, try the return address itself, too. It may be the first byte of named code, while the call
            // before it is in code without a name.
            let hit = find_code(word.frame.for_lookup()).or_else(|| find_code(addr));
            let new_address = match hit {
                Some(hit) => {
                    let distance = addr.0.wrapping_sub(self.symbolizer.codes.segment(hit.segment).start.0);
                    Some(NewAddress::Code { segment: hit.segment, distance })
                }
                None => {
                    let first = self.remapped.to_first_mapping(&self.survey.spaces, pid, word.frame, sample.time);
                    first.map(NewAddress::File)
                }
            };
            if let Some(new_address) = new_address {
                found.push(Relocation { record: raw.offset, word_offset: word.offset as u32, new_address });
            }
        }
    }
}

impl NewAddress {
    /// The new address. `None` if the code wasn't selected or has no place in an image.
    fn resolve(self, images: &JitImages<'_, '_>) -> Option<u64> {
        let (segment, distance) = match self {
            Self::File(addr) => return Some(addr.0),
            Self::Code { segment, distance } => (segment, distance),
        };
        let (image, offset) = images.place(segment)?;
        Some(image.base?.0.wrapping_add(offset).wrapping_add(distance))
    }
}

/// An edit that replaces a record by an identical copy, in which addresses can then be overwritten.
fn copy_record(input: &PlainRecording<'_>, record: u64) -> Option<Edit> {
    let bytes = input.records().get(usize::try_from(record.checked_sub(input.base())?).ok()?..)?;
    let raw = Records::new(bytes, record, input.recording.header.endian).next()?;
    Some(Edit { at: record, remove: raw.bytes.len() as u64, insert: raw.bytes.to_vec() })
}
