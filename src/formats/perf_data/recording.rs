//! A recording's events, event IDs and features: everything that gives meaning to the records.

use super::attr::Event;
use super::features::FeatureSection;
use super::header::{ATTR_SIZE_MIN, FEATURES, FILE_HEADER, FileSection, Form, Header};
use super::kind;
use super::sample::Sample;
use super::sample_id::SampleId;
use super::walk::{RawRecord, Records};
use crate::bytes::cursor::{Cursor, Endian};
use crate::error::{Error, Result, Warning, Warnings};
use crate::model::Nanos;
use crate::model::abi;
use crate::model::process::{Clock, TscConversion};
use linux_perf_data::Feature;
use linux_perf_event_reader::constants as event_abi;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Reads a part of the file, given as `(offset, length)` in bytes. Fails if the file ends before the part does.
pub type ReadAt<'a> = dyn FnMut(u64, u64) -> Result<Vec<u8>> + 'a;

/// A recording without its records.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The file header.
    pub header: Header,
    /// The events, in the order of their attrs.
    pub events: Vec<Event>,
    /// The feature sections by feature number.
    pub features: BTreeMap<Feature, FeatureSection>,
    /// The byte range of the records in the file. In pipe form, or if the recorder was killed, it ends with the file.
    pub data: Range<u64>,
    /// In file form, the file offset where the attrs and their IDs end.
    pub(super) attrs_end: u64,
    /// Indices into `events`, by event ID.
    by_id: FxHashMap<u64, usize>,
    /// Pipe form: the payload of the HEADER_TRACING_DATA record.
    piped_tracing_data: Option<FeatureSection>,
}

impl Recording {
    /// True if an event recorded more than the innermost frame: call chains, stack copies or branches.
    pub fn has_stacks(&self) -> bool {
        let fields =
            [event_abi::PERF_SAMPLE_CALLCHAIN, event_abi::PERF_SAMPLE_STACK_USER, event_abi::PERF_SAMPLE_BRANCH_STACK];
        // `is_off_cpu_raw`: the call chains of the event's samples are in the raw data.
        self.events
            .iter()
            .any(|event| event.is_off_cpu_raw() || fields.iter().any(|field| event.attr.has_field(*field)))
    }

    /// Reads header, attrs and features of a file of `len` bytes. In pipe form, attrs and features are among the
    /// records: only the header is read here, and the caller must pass every record to [`Recording::absorb`].
    pub fn read(len: u64, read_at: &mut ReadAt<'_>, warnings: &mut Warnings) -> Result<Self> {
        let header = Header::parse(&read_at(0, len.min(FILE_HEADER))?)?;
        let data = header.data.offset.min(len)..data_end(&header, len, warnings);
        let attrs_end = header.attrs.end();
        let (events, by_id) = (Vec::new(), FxHashMap::default());
        let mut recording =
            Self { header, events, features: BTreeMap::new(), data, attrs_end, by_id, piped_tracing_data: None };
        if header.form == Form::File {
            recording.read_attrs(len, read_at)?;
            recording.read_features(len, read_at, warnings);
        }
        Ok(recording)
    }

    /// Parses a recording that is completely in memory. In pipe form this walks all records for attrs and features.
    pub fn parse(bytes: &[u8], warnings: &mut Warnings) -> Result<Self> {
        let mut read_at = |offset: u64, len: u64| {
            // Only bytes are copied, so the byte order doesn't matter.
            let mut cursor = Cursor::new(bytes, 0, Endian::Little);
            cursor.bytes(offset, "section offset")?;
            cursor.bytes(len, "section").map(<[u8]>::to_vec)
        };
        let mut recording = Self::read(bytes.len() as u64, &mut read_at, warnings)?;
        if recording.header.form == Form::Pipe {
            for record in recording.records(bytes) {
                if let Err(error) = recording.absorb(&record) {
                    warnings.push(error.into_warning());
                }
                if record.kind == kind::HEADER_TRACING_DATA {
                    // The record only states how long its payload is. The payload itself follows the record.
                    let offset = record.offset + record.bytes.len() as u64;
                    let (start, end) = (to_index(offset), to_index(record.end()));
                    let payload = bytes.get(start..end);
                    recording.piped_tracing_data =
                        payload.map(|payload| FeatureSection { offset, bytes: payload.to_vec() });
                }
            }
        }
        Ok(recording)
    }

    /// Reads the attrs section. Each of its entries is the attr of an event, followed by the section with the event's
    /// IDs (16 bytes). `len` is the file's length.
    fn read_attrs(&mut self, len: u64, read_at: &mut ReadAt<'_>) -> Result<()> {
        let (FileSection { offset, size }, entry_size) = (self.header.attrs, self.header.attr_entry_size);
        if self.header.attrs.end() > len {
            let message =
                format!("the attrs section at {offset:#x} of {size} bytes ends beyond the file's {len} bytes");
            return Err(Error::new(message).at_offset(24)); // where the header states the section
        }
        let entries = read_at(offset, size)?;
        let mut cursor = Cursor::new(&entries, offset, self.header.endian);
        while !cursor.is_empty() {
            let base = cursor.offset();
            let attr = cursor.bytes(entry_size - 16, "attr")?;
            let ids = FileSection::parse(&mut cursor, "ids section")?;
            if ids.end() > len {
                return Err(Error::new(format!(
                    "the section of event IDs at {:#x} ends beyond the file's {len} bytes",
                    ids.offset
                ))
                .at_offset(base + entry_size - 16));
            }
            self.attrs_end = self.attrs_end.max(ids.end());
            let ids = parse_ids(&read_at(ids.offset, ids.size)?, ids.offset, self.header.endian);
            self.add_event(Event::new(attr, ids, base, self.header.endian)?);
        }
        Ok(())
    }

    fn add_event(&mut self, event: Event) {
        let index = self.events.len();
        self.by_id.extend(event.ids.iter().map(|&id| (id, index)));
        self.events.push(event);
    }

    /// Reads the feature sections. If one is truncated, it and all later ones are skipped with a warning. The records
    /// can be read without them.
    fn read_features(&mut self, len: u64, read_at: &mut ReadAt<'_>, warnings: &mut Warnings) {
        // The features follow the data. A recorder that was killed left the data's size 0 and wrote no features.
        if self.header.feature_numbers().next().is_none() || self.header.data.size == 0 {
            return;
        }
        let table = self.header.data.end();
        for (position, number) in (0..).zip(self.header.feature_numbers()) {
            let entry = table.saturating_add(position * 16);
            let feature = Feature(number);
            match read_section(entry, self.header.endian, len, read_at) {
                Ok(section) => {
                    self.features.insert(feature, section);
                }
                Err(error) => {
                    // If the section's entry in the feature table (16 bytes) is beyond the end of the file, the file
                    // was truncated. Then report where the file ends, not what `read_section` couldn't read.
                    let is_truncated = entry.saturating_add(16) > len;
                    let error = if is_truncated {
                        Error::new(format!(
                            "feature section {feature} and all later ones are missing, because the file ends at byte \
                             {len:#x}"
                        ))
                    } else {
                        Error::new(format!(
                            "feature section {feature} cannot be read, so it and all later ones were skipped"
                        ))
                        .because(error)
                        .at_offset(entry)
                    };
                    warnings.push(error.into_warning());
                    break;
                }
            }
        }
        self.name_events(warnings);
    }

    /// Names the events by the features of perf (EVENT_DESC) and of simpleperf (META_INFO).
    fn name_events(&mut self, warnings: &mut Warnings) {
        if let Some(feature) = self.features.get(&Feature::EVENT_DESC) {
            let named = feature.name_events(self.header.endian, &mut self.events);
            named.unwrap_or_else(|error| warnings.push(error.into_warning()));
        }
        self.name_events_by_meta_info();
    }

    /// Adds what a record in pipe form says about the recording itself: a new event, a new name of an event, or a
    /// feature. Returns false, and does nothing, for other kinds of records.
    pub fn absorb(&mut self, record: &RawRecord<'_>) -> Result<bool> {
        let mut body = record.body();
        match record.kind {
            kind::HEADER_ATTR => self.add_piped_attr(body)?,
            kind::EVENT_UPDATE => self.apply_event_update(body)?,
            kind::HEADER_FEATURE => {
                let number = body.u64("feature number")?;
                let feature = u32::try_from(number).ok().filter(|&number| number < FEATURES).map(Feature);
                let feature = feature.ok_or_else(|| body.error("the number of a feature must be below 256"))?;
                // An empty section marks the end of the features.
                if body.is_empty() {
                    return Ok(true);
                }
                self.features.insert(feature, FeatureSection { offset: body.offset(), bytes: body.rest().to_vec() });
                if feature == Feature::EVENT_DESC {
                    // A copy, because naming changes the events of `self`.
                    self.features[&feature].clone().name_events(self.header.endian, &mut self.events)?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds the event that a HEADER_ATTR record describes. Recordings in pipe form have these records instead of an
    /// attrs section. `body` is the record without its header.
    fn add_piped_attr(&mut self, mut body: Cursor<'_>) -> Result<()> {
        let base = body.offset();
        // The attr states its own length in its second word (0 in the first versions of perf), so look ahead for it.
        // The IDs of the event fill the rest of the record.
        let mut peek = body;
        peek.u32("attr type")?;
        let size = u64::from(peek.u32("attr size")?).max(ATTR_SIZE_MIN);
        let attr = body.bytes(size, "attr")?;
        let ids = parse_ids(body.rest(), body.offset(), self.header.endian);
        self.add_event(Event::new(attr, ids, base, self.header.endian)?);
        Ok(())
    }

    /// Applies an EVENT_UPDATE record that gives an event another name; ignores updates of units, scales and CPUs. The
    /// record is `struct perf_record_event_update`: u64 type, u64 ID of the event, then for type 2 (NAME) the name.
    fn apply_event_update(&mut self, mut body: Cursor<'_>) -> Result<()> {
        const NAME: u64 = 2;
        let kind = body.u64("event update type")?;
        let id = body.u64("event update id")?;
        if kind == NAME {
            let name = String::from_utf8_lossy(body.cstr("event name")?).into_owned();
            if let Some(event) = self.by_id.get(&id).and_then(|&index| self.events.get_mut(index)) {
                event.name = name;
            }
        }
        Ok(())
    }

    /// True if any event is a tracepoint.
    pub fn has_tracepoints(&self) -> bool {
        self.events.iter().any(|event| event.attr.is_tracepoint())
    }

    /// True if perf script, by default, prints more than the frames for the samples of some event: for tracepoints,
    /// output of BPF programs and raw events of the processor.
    pub fn prints_more_than_frames(&self) -> bool {
        self.events.iter().any(|Event { attr, .. }| attr.is_tracepoint() || attr.is_bpf_output() || attr.is_raw_event())
    }

    /// TRACING_DATA, which describes the fields of tracepoints: the feature section or, in pipe form, the payload of
    /// the HEADER_TRACING_DATA record. `None` if the recording has neither.
    pub fn tracing_data(&self) -> Option<&FeatureSection> {
        self.features.get(&Feature::TRACING_DATA).or(self.piped_tracing_data.as_ref())
    }

    /// Iterates over the records of the recording; `bytes` is the complete file.
    pub fn records<'data>(&self, bytes: &'data [u8]) -> Records<'data> {
        let start = to_index(self.data.start).min(bytes.len());
        let end = to_index(self.data.end).min(bytes.len()).max(start);
        Records::new(&bytes[start..end], self.data.start, self.header.endian)
    }

    /// Index of the event that a kernel record belongs to, found by the event ID in the record. If the recording has
    /// only one event, or none with that ID, the record belongs to the first event. `None` if there are no events, or
    /// if there are several and the record has no ID.
    pub fn event_of(&self, record: &RawRecord<'_>) -> Option<usize> {
        let first = self.events.first()?;
        if self.events.len() == 1 {
            return Some(0);
        }
        // perf makes sure that the ID is at the same place in the records of all events, so any attr tells the place.
        // Samples have the ID near their start; other records have it in a trailer at their end.
        let id_offset = if record.kind == kind::SAMPLE {
            sample_id_position(first.attr.sample_type)?
        } else {
            record.bytes.len().checked_sub(trailer_id_position(first.attr.sample_type)?)?
        };
        let bytes = record.bytes.get(id_offset..)?;
        let id = Cursor::new(bytes, 0, record.endian).u64("id").ok()?;
        // Records that perf synthesizes have ID 0, which no event has. They belong to the first event.
        self.by_id.get(&id).copied().or(Some(0))
    }

    /// The index in `events` of the event with this ID; `None` if the ID is unknown. Each event has one ID per CPU or
    /// thread.
    pub fn event_by_id(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Parses a SAMPLE record.
    pub fn sample<'data>(&self, record: &RawRecord<'data>) -> Result<Sample<'data>> {
        // A sample that doesn't say which of several events it belongs to counts for the first.
        let index = self.event_of(record).unwrap_or(0);
        let Some(event) = self.events.get(index) else {
            return Err(Error::new("a sample comes before the description of its event").at_offset(record.offset));
        };
        let mut sample = Sample::parse(record, index, &event.attr)?;
        // Samples of `perf record --off-cpu` have thread, period and call chain in their raw data. Move them to the
        // sample's fields.
        if event.is_off_cpu_raw() {
            sample.take_off_cpu(record.offset, record.endian)?;
        }
        Ok(sample)
    }

    /// The `sample_id` trailer of a kernel record that is not a sample. `None` for other records, or if there is no
    /// trailer.
    pub fn sample_id(&self, record: &RawRecord<'_>) -> Option<SampleId> {
        if record.kind >= kind::USER_START || record.kind == kind::SAMPLE {
            return None;
        }
        let attr = &self.events.get(self.event_of(record).unwrap_or(0))?.attr;
        if attr.sample_id_all() { SampleId::parse(record.bytes, attr.sample_type, record.endian) } else { None }
    }

    /// The time of a kernel record, from the TIME field of a SAMPLE or from the `sample_id` trailer of another record.
    /// `None` if no time was recorded. Cheaper than parsing the whole sample.
    pub fn time(&self, record: &RawRecord<'_>) -> Option<Nanos> {
        if record.kind != kind::SAMPLE {
            return self.sample_id(record)?.time;
        }
        let sample_type = self.events.get(self.event_of(record)?)?.attr.sample_type;
        if sample_type & event_abi::PERF_SAMPLE_TIME == 0 {
            return None;
        }
        // Like the record's header, each field before the time has 8 bytes. So their number tells the time's offset.
        let fields_before = event_abi::PERF_SAMPLE_IDENTIFIER | event_abi::PERF_SAMPLE_IP | event_abi::PERF_SAMPLE_TID;
        let offset = 8 + (sample_type & fields_before).count_ones() as usize * 8;
        Cursor::new(record.bytes.get(offset..)?, 0, record.endian).u64("time").ok().map(Nanos)
    }

    /// True if the recording declares compressed records (`perf record -z`).
    pub fn declares_compression(&self) -> bool {
        self.features.contains_key(&Feature::COMPRESSED)
    }

    /// Size in bytes of the recorder's buffer for one CPU: the fifth number of the COMPRESSED feature, if there is one.
    pub fn mmap_len(&self) -> Option<u32> {
        let feature = self.features.get(&Feature::COMPRESSED)?;
        // Four u32 (version, type, level and ratio) come before the buffer's size.
        let mut numbers = Cursor::new(feature.bytes.get(16..)?, 0, self.header.endian);
        numbers.u32("mmap_len").ok()
    }

    /// The clock of all times in the recording, and its distance to wall-clock time if CLOCK_DATA states one for this
    /// clock. The clock's ID is `None` if the events use different clocks or perf's own. `tsc` is the conversion from a
    /// TIME_CONV record, if there is one.
    pub fn clock(&self, tsc: Option<TscConversion>) -> Clock {
        let mut clocks = self.events.iter().map(|event| event.attr.clock());
        let first = clocks.next().flatten();
        let clockid = if clocks.all(|clock| clock == first) { first } else { None };
        let mut reference = None;
        if let Some(feature) = self.features.get(&Feature::CLOCK_DATA)
            && let Ok((reference_clockid, wall, time)) = feature.clock_data(self.header.endian)
            && Some(reference_clockid) == clockid
        {
            reference = Some((Nanos(wall), Nanos(time)));
        }
        Clock { clockid, reference, tsc }
    }

    /// ELF `e_machine` of the recorded programs, from the ARCH feature (`uname -m`). `None` for unknown machines.
    pub fn machine(&self) -> Option<u16> {
        let feature = self.features.get(&Feature::ARCH)?;
        Some(match feature.string(self.header.endian).ok()? {
            b"x86_64" => abi::EM_X86_64,
            b"i386" | b"i486" | b"i586" | b"i686" => abi::EM_386,
            b"aarch64" | b"arm64" | b"aarch64_be" => abi::EM_AARCH64,
            arch if arch.starts_with(b"arm") => abi::EM_ARM,
            arch if arch.starts_with(b"ppc64") => abi::EM_PPC64,
            arch if arch.starts_with(b"ppc") => abi::EM_PPC,
            b"s390x" | b"s390" => abi::EM_S390,
            arch if arch.starts_with(b"riscv") => abi::EM_RISCV,
            arch if arch.starts_with(b"mips") => abi::EM_MIPS,
            arch if arch.starts_with(b"loongarch") => abi::EM_LOONGARCH,
            arch if arch.starts_with(b"sparc") => abi::EM_SPARCV9,
            _ => return None,
        })
    }
}

/// The file offset at which the records end. If the file is truncated or was never finished, that is the end of the
/// file, and a warning is added.
fn data_end(header: &Header, len: u64, warnings: &mut Warnings) -> u64 {
    let end = header.data.end();
    if header.form == Form::Pipe {
        return len;
    }
    if header.data.size == 0 {
        let message = "the file is unfinished (perf was killed or is still running); records were read up to its end";
        warnings.push(Warning::new(message));
        return len;
    }
    if end > len {
        let missing = end - len;
        warnings.push(
            Error::new(format!("the file is truncated: {missing} bytes of records are missing"))
                .at_offset(len)
                .into_warning(),
        );
    }
    end.min(len)
}

/// Reads a feature section. `entry` is the file offset of its entry in the feature table, which says where the section
/// is; `len` is the file's length.
fn read_section(entry: u64, endian: Endian, len: u64, read_at: &mut ReadAt<'_>) -> Result<FeatureSection> {
    let bytes = read_at(entry, 16)?;
    let section = FileSection::parse(&mut Cursor::new(&bytes, entry, endian), "section")?;
    if section.end() > len {
        let FileSection { offset, size } = section;
        return Err(Error::new(format!(
            "the section at {offset:#x} of {size} bytes ends beyond the file's {len} bytes"
        )));
    }
    Ok(FeatureSection { offset: section.offset, bytes: read_at(section.offset, section.size)? })
}

/// Parses event IDs, 8 bytes each. `base` is their file offset, for errors.
fn parse_ids(bytes: &[u8], base: u64, endian: Endian) -> Vec<u64> {
    let mut cursor = Cursor::new(bytes, base, endian);
    std::iter::from_fn(|| cursor.u64("id").ok()).collect()
}

/// Converts a file offset to an index. An offset that doesn't fit becomes an index beyond every slice.
fn to_index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// Offset of the event ID in a SAMPLE record, in bytes from the start of the record. `None` if samples have no ID. Both
/// the IDENTIFIER and the ID field hold it; the fields before them have 8 bytes each, like the record's header.
fn sample_id_position(sample_type: u64) -> Option<usize> {
    if sample_type & event_abi::PERF_SAMPLE_IDENTIFIER != 0 {
        return Some(8);
    }
    if sample_type & event_abi::PERF_SAMPLE_ID == 0 {
        return None;
    }
    let fields_before = event_abi::PERF_SAMPLE_IP
        | event_abi::PERF_SAMPLE_TID
        | event_abi::PERF_SAMPLE_TIME
        | event_abi::PERF_SAMPLE_ADDR;
    Some(8 + (sample_type & fields_before).count_ones() as usize * 8)
}

/// Distance in bytes from the start of the event ID in a trailer to the end of the record. `None` if trailers have no
/// ID.
fn trailer_id_position(sample_type: u64) -> Option<usize> {
    if sample_type & event_abi::PERF_SAMPLE_IDENTIFIER != 0 {
        return Some(8);
    }
    if sample_type & event_abi::PERF_SAMPLE_ID == 0 {
        return None;
    }
    // Like the ID, each field after it has 8 bytes. So their number tells the distance.
    let fields_after = event_abi::PERF_SAMPLE_STREAM_ID | event_abi::PERF_SAMPLE_CPU;
    Some(8 + (sample_type & fields_after).count_ones() as usize * 8)
}
