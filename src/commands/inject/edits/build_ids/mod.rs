//! Adds the build IDs of ordinary files, so that another machine can find the right files. `perf inject -b` and its
//! variants do the same.

pub(in crate::commands::inject) mod finder;

use crate::bytes::cursor::Endian;
use crate::commands::inject::options::{BuildIdMode, InjectContext};
use crate::commands::inject::survey::{PlainRecording, SurveyedRecording};
use crate::error::Result;
use crate::formats::perf_data::{Edit, Mmap, RawRecord, Record, Records, kind, record};
use crate::model::Nanos;
use crate::model::abi::{MAP_PRIVATE, PROT_READ_EXEC};
use crate::model::process::{BuildId, CpuMode};
use crate::symbolize::dso::{Dso, DsoId, DsoKind};
use finder::{BuildIdFinder, ListedFile};
use rustc_hash::{FxHashMap, FxHashSet};

/// Edits that add build IDs.
#[derive(Debug, Default)]
pub(super) struct BuildIdEdits {
    pub(super) edits: Vec<Edit>,
    /// Entries for the BUILD_ID feature section.
    pub(super) entries: Vec<u8>,
}

impl BuildIdEdits {
    /// Plans the edits that add build IDs of files. Depending on the selected [`BuildIdMode`], the IDs go into records
    /// of their own or into the mapping records, for files with samples or for all files.
    pub(super) fn find(survey: &SurveyedRecording<'_>, context: &mut InjectContext<'_>) -> Result<Self> {
        let (options, input) = (context.options, survey.input);
        let mut planned = Self::default();
        if options.build_ids == BuildIdMode::None {
            return Ok(planned);
        }
        let finder = &mut BuildIdFinder::new(survey, options.known_build_ids.as_ref(), context)?;
        match options.build_ids {
            BuildIdMode::None => {}
            BuildIdMode::Hit => planned.insert_before_first_samples(survey, finder),
            BuildIdMode::All => planned.insert_before_first_mappings(input, finder),
            BuildIdMode::HitMappings => {
                let hits = count_samples(survey);
                planned.rewrite_mappings(input, finder, |file| hits.contains_key(file));
            }
            BuildIdMode::AllMappings => planned.rewrite_mappings(input, finder, |_| true),
        }
        if !finder.missing.is_empty() {
            finder.warn_about_missing(
                &count_samples(survey).into_iter().map(|(file, hits)| (file, hits.frames)).collect(),
            );
        }
        context.outcome.warnings.append(std::mem::take(&mut finder.warnings));
        Ok(planned)
    }

    /// Inserts a build ID record for each file with samples, before the first of those samples.
    fn insert_before_first_samples(&mut self, survey: &SurveyedRecording<'_>, finder: &mut BuildIdFinder) {
        let mut hits: Vec<(u64, ListedFile)> =
            count_samples(survey).into_iter().map(|(file, hits)| (hits.first, file)).collect();
        hits.sort_unstable();
        for (first_sample, file) in hits {
            if let Some(id) = finder.find(&file) {
                self.insert(first_sample, &file, &id, survey.input.recording.header.endian);
            }
        }
    }

    /// Inserts a build ID record before the first mapping of each file.
    fn insert_before_first_mappings(&mut self, input: &PlainRecording<'_>, finder: &mut BuildIdFinder) {
        let mut written: FxHashSet<Vec<u8>> = FxHashSet::default();
        for (raw, mmap) in mappings(input) {
            let file = ListedFile::from_mapping(&mmap);
            if let Some(id) = finder.find(&file)
                && !written.contains(&file.path)
            {
                self.insert(raw.offset, &file, &id, raw.endian);
                written.insert(file.path);
            }
        }
    }

    /// Writes build IDs into the mapping records of the `wanted` files, unless a record already has one.
    fn rewrite_mappings(
        &mut self,
        input: &PlainRecording<'_>,
        finder: &mut BuildIdFinder,
        wanted: impl Fn(&ListedFile) -> bool,
    ) {
        for (raw, mmap) in mappings(input) {
            if mmap.build_id.is_some() {
                continue;
            }
            let file = ListedFile::from_mapping(&mmap);
            if wanted(&file)
                && let Some(id) = finder.find(&file)
            {
                self.edits.extend(set_build_id(input, &raw, mmap, id));
            }
        }
    }

    /// Inserts a build ID record before the record at the offset `at`, and adds an entry to the feature section.
    fn insert(&mut self, at: u64, file: &ListedFile, id: &BuildId, endian: Endian) {
        let insert = build_id_record(id, &file.path, file.cpumode, endian);
        self.entries.extend(&insert);
        self.edits.push(Edit { at, remove: 0, insert });
    }
}

/// All mapping records of files that may have a build ID.
fn mappings<'i>(input: &'i PlainRecording<'_>) -> impl Iterator<Item = (RawRecord<'i>, Mmap<'i>)> {
    let records = Records::new(input.records(), input.base(), input.recording.header.endian);
    records.filter_map(|raw| mapping(&raw).map(|mmap| (raw, mmap)))
}

/// Parses a mapping record. `None` if it is another kind of record, or if a mapping of this kind can't have a build ID.
fn mapping<'data>(raw: &RawRecord<'data>) -> Option<Mmap<'data>> {
    if !matches!(raw.kind, kind::MMAP | kind::MMAP2) {
        return None;
    }
    let Ok(Record::Mmap(mmap)) = Record::parse(raw) else { return None };
    let may_have_id = match mmap.cpumode {
        CpuMode::Kernel => true,
        CpuMode::User => matches!(Dso::kind_of_user_path(mmap.path), DsoKind::File | DsoKind::Vdso),
        _ => false,
    };
    if may_have_id { Some(mmap) } else { None }
}

/// The edit that replaces a mapping record by an MMAP2 record with the build ID. `None` if the new record can't be
/// built, because its event is unknown or because it would be too long.
fn set_build_id(input: &PlainRecording<'_>, raw: &RawRecord<'_>, mmap: Mmap<'_>, id: BuildId) -> Option<Edit> {
    let (prot, flags) = (mmap.prot.unwrap_or(PROT_READ_EXEC), mmap.flags.unwrap_or(MAP_PRIVATE));
    let mmap = Mmap { build_id: Some(id), prot: Some(prot), flags: Some(flags), ..mmap };
    let trailer = input.recording.sample_id(raw);
    let sample_type = input.recording.events.get(input.recording.event_of(raw)?)?.attr.sample_type;
    let insert = mmap.to_mmap2(trailer.as_ref().map(|id| (id, sample_type)), raw.endian)?;
    Some(Edit { at: raw.offset, remove: raw.bytes.len() as u64, insert })
}

/// The samples whose stacks have frames in a file.
struct FileSamples {
    /// The offset of the first sample in the record stream.
    first: u64,
    /// Frames in the file, counting both the innermost ones and those of call chains.
    frames: u64,
}

/// Collects the files that contain frames of samples. For each, counts these frames and notes its first sample.
fn count_samples(survey: &SurveyedRecording<'_>) -> FxHashMap<ListedFile, FileSamples> {
    let SurveyedRecording { input, spaces, .. } = survey;
    let mut hits: FxHashMap<DsoId, FileSamples> = FxHashMap::default();
    let records = Records::new(input.records(), input.base(), input.recording.header.endian);
    for raw in records {
        let Some(Ok(sample)) = input.recording.chain_sample(&raw) else { continue };
        let (pid, _) = sample.pid_tid.unwrap_or_default();
        // Without a time, take what was mapped last.
        let time = sample.time.unwrap_or(Nanos(u64::MAX));
        for (mode, frame) in sample.frames() {
            let Some(place) = spaces.lookup(pid, frame.for_lookup(), time, mode) else { continue };
            hits.entry(place.dso).or_insert(FileSamples { first: raw.offset, frames: 0 }).frames += 1;
        }
    }
    let mut by_file: FxHashMap<ListedFile, FileSamples> = FxHashMap::default();
    for (dso, FileSamples { first, frames }) in hits {
        // Several code objects may be one file in lists of build IDs, so join their counts.
        let Some(file) = ListedFile::from_dso(spaces.dsos().get(dso)) else { continue };
        let hits = by_file.entry(file).or_insert(FileSamples { first, frames: 0 });
        hits.first = hits.first.min(first);
        hits.frames += frames;
    }
    by_file
}

/// Makes a HEADER_BUILD_ID record (`struct perf_record_header_build_id`). The same bytes are an entry of the BUILD_ID
/// feature.
pub(in crate::commands::inject) fn build_id_record(
    id: &BuildId,
    path: &[u8],
    cpumode: CpuMode,
    endian: Endian,
) -> Vec<u8> {
    /// `PERF_RECORD_MISC_BUILD_ID_SIZE`: the record states the size of the build ID.
    const BUILD_ID_SIZE: u16 = 1 << 15;
    /// The record's process ID for files that aren't from a virtual machine.
    const HOST: i32 = -1;
    // `PERF_RECORD_MISC_KERNEL` or `PERF_RECORD_MISC_USER`.
    let misc = if cpumode == CpuMode::Kernel { 1 } else { 2 };
    let mut body = match endian {
        Endian::Little => HOST.to_le_bytes().to_vec(),
        Endian::Big => HOST.to_be_bytes().to_vec(),
    };
    let bytes = id.as_bytes();
    body.extend(bytes);
    // After the process ID (4 bytes), there are 20 bytes for the build ID, its size, and 3 unused bytes.
    body.resize(4 + 20, 0);
    body.extend([bytes.len() as u8, 0, 0, 0]);
    body.extend(path);
    // The path gets one or more NULs at its end, so that the record's length is a multiple of 8. The fields before the
    // path have 8 (header) + 28 (process ID, build ID and its size) bytes.
    body.resize((body.len() + 1).next_multiple_of(8), 0);
    record(kind::HEADER_BUILD_ID, misc | BUILD_ID_SIZE, &body, endian).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_record_is_read_back() {
        let id = BuildId::new(&[7; 20]).unwrap();
        let bytes = build_id_record(&id, b"/bin/x", CpuMode::User, Endian::Big);
        assert_eq!(bytes.len() % 8, 0);
        let raw = Records::new(&bytes, 0, Endian::Big).next().unwrap();
        let Ok(Record::BuildId(read)) = Record::parse(&raw) else { panic!("not read back") };
        assert_eq!((read.build_id, read.path, read.cpumode), (Some(id), &b"/bin/x"[..], CpuMode::User));
    }
}
