//! `--relocate`: code gets addresses of its own, where nothing else ever was, and each image is mapped once, as a
//! whole, like any library.
//!
//! perf follows what is mapped where at each moment; other readers do not. hotspot, for one, remembers names by file
//! and distance from the start of the *mapping*, whatever was mapped later: of an image that is mapped piece by piece
//! it shows the names of the pieces that it saw first. With this the ips, call chains and branches of samples are
//! rewritten: what ran at an address at that time decides where it is now. Addresses in files that are mapped a second
//! time (node maps its builtins again, near its JIT code) are rewritten to where the file was mapped first.

use super::remapped_files::RemappedFiles;
use crate::bytes::cursor::Endian;
use crate::commands::inject::images::JitImages;
use crate::commands::inject::survey::{PlainRecording, SurveyedRecording};
use crate::model::Addr;
use crate::model::process::CpuMode;
use crate::parallel::Pool;
use crate::records::perf_data::{Edit, RawRecord, Recording, Records, kind};
use crate::resolve::code_map::{CodeMap, SegmentId, SelectedIds};
use crate::resolve::precedence::is_told_of;
use rustc_hash::FxHashMap;

/// All words of samples that get another address, in the order of the stream.
#[derive(Debug, Default)]
pub(super) struct Relocations(Vec<Relocation>);

/// A word of a sample that gets another address.
#[derive(Debug, Clone, Copy)]
struct Relocation {
    /// The offset of the sample's record in the stream.
    record: u64,
    /// The offset of the word in the record.
    at: u32,
    to: NewAddress,
}

/// The new target of a word.
#[derive(Debug, Clone, Copy)]
enum NewAddress {
    /// So far behind the start of JIT code, wherever that will be: at its end, for what a call there returns to.
    Code { segment: SegmentId, distance: u64 },
    /// The address where the same byte of the same file was mapped first.
    File(Addr),
}

impl Relocations {
    /// Finds them. Samples that are replaced are looked at as they will be; so is the recording, if it changes.
    pub(super) fn find(
        survey: &SurveyedRecording<'_>,
        codes: &CodeMap<'_>,
        changed: Option<&Recording>,
        replacements: &[Edit],
        pool: &Pool,
    ) -> Self {
        let recording = changed.unwrap_or(&survey.input.recording);
        let replaced: FxHashMap<u64, &Edit> =
            replacements.iter().filter(|edit| edit.remove > 0).map(|edit| (edit.at, edit)).collect();
        let finder = &RelocationFinder { survey, recording, codes, remapped: &RemappedFiles::new(&survey.processes) };
        let found = pool.map(survey.chunks.list(), |records| {
            let mut found = Vec::new();
            for raw in records.filter(|raw| matches!(raw.kind, kind::SAMPLE | kind::CALLCHAIN_DEFERRED)) {
                let edit = replaced.get(&raw.offset);
                let now = edit.and_then(|edit| Records::new(&edit.insert, raw.offset, raw.endian).next());
                finder.sample(&now.unwrap_or(raw), &mut found);
            }
            found
        });
        Self(found.into_iter().flatten().collect())
    }

    /// Writes the new addresses into the samples: into what `edits` put in their place, or as further edits.
    /// Addresses of code that was not selected stay as they are.
    pub(super) fn apply(
        &self,
        input: &PlainRecording,
        images: &JitImages<'_, '_>,
        ids: &SelectedIds,
        edits: &mut Vec<Edit>,
    ) {
        let replacements = edits.iter().enumerate().filter(|(_, edit)| edit.remove > 0);
        let replacements: FxHashMap<u64, usize> = replacements.map(|(index, edit)| (edit.at, index)).collect();
        for words in self.0.chunk_by(|a, b| a.record == b.record) {
            let record = words[0].record;
            let index = replacements.get(&record).copied().or_else(|| {
                edits.push(as_it_is(input, record)?);
                Some(edits.len() - 1)
            });
            let Some(edit) = index.and_then(|index| edits.get_mut(index)) else { continue };
            for word in words {
                let Some(addr) = word.to.addr(images, ids) else { continue };
                if let Some(bytes) = edit.insert.get_mut(word.at as usize..).and_then(|bytes| bytes.first_chunk_mut()) {
                    *bytes = match input.recording.header.endian {
                        Endian::Little => addr.to_le_bytes(),
                        Endian::Big => addr.to_be_bytes(),
                    };
                }
            }
        }
    }
}

/// The context that shows where an address leads.
struct RelocationFinder<'a, 'data> {
    survey: &'a SurveyedRecording<'a>,
    /// As its samples will be.
    recording: &'a Recording,
    codes: &'a CodeMap<'data>,
    remapped: &'a RemappedFiles,
}

impl RelocationFinder<'_, '_> {
    fn sample(&self, raw: &RawRecord<'_>, found: &mut Vec<Relocation>) {
        // Damaged samples are counted where used code is looked for; they stay as they are.
        let Some(Ok(sample)) = self.recording.chain_sample(raw) else { return };
        let Ok(words) = self.recording.code_addresses(raw) else { return };
        let Some((pid, _)) = sample.pid_tid.filter(|(pid, _)| !self.survey.injected.contains(pid)) else { return };
        for word in words.into_iter().filter(|word| word.mode == CpuMode::User) {
            let addr = word.frame.raw();
            let code = |addr| {
                let hit = self.codes.lookup(pid, addr, sample.time)?;
                is_told_of(&hit, self.codes, &self.survey.spaces, (pid, addr), sample.time).then_some(hit)
            };
            // Like perf: a return address may be the first of code that has no call before it.
            let hit = code(word.frame.for_lookup()).or_else(|| code(addr));
            let to = match hit {
                Some(hit) => {
                    let distance = addr.0.wrapping_sub(self.codes.segment(hit.segment).start.0);
                    Some(NewAddress::Code { segment: hit.segment, distance })
                }
                None => {
                    let first = self.remapped.first_place(&self.survey.spaces, pid, word.frame, sample.time);
                    first.map(NewAddress::File)
                }
            };
            found.extend(to.map(|to| Relocation { record: raw.offset, at: word.at as u32, to }));
        }
    }
}

impl NewAddress {
    /// The address, if there is one: code may not have been selected, or have got no place.
    fn addr(self, images: &JitImages<'_, '_>, ids: &SelectedIds) -> Option<u64> {
        let (segment, distance) = match self {
            Self::File(addr) => return Some(addr.0),
            Self::Code { segment, distance } => (segment, distance),
        };
        let (image, offset) = images.place(ids.get(segment)?)?;
        Some(image.base?.0.wrapping_add(offset).wrapping_add(distance))
    }
}

/// An edit that puts a record in its own place.
fn as_it_is(input: &PlainRecording, record: u64) -> Option<Edit> {
    let bytes = input.records().get(usize::try_from(record.checked_sub(input.base())?).ok()?..)?;
    let raw = Records::new(bytes, record, input.recording.header.endian).next()?;
    Some(Edit { at: record, remove: raw.bytes.len() as u64, insert: raw.bytes.to_vec() })
}
