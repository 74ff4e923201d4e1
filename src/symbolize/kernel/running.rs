//! Tells whether the recorded kernel is the one running on this machine.

use super::lines::{name_at_start, parse_line};
use crate::io;
use crate::model::process::BuildId;
use crate::symbolize::symbols::files;
use std::path::{Path, PathBuf};

/// What is known about the kernel that runs on this machine.
pub(super) struct RunningKernel {
    pub(super) build_id: Option<BuildId>,
    /// The kernel's release, as printed by `uname -r`, perhaps with a line break; `None` if it can't be read.
    pub(super) release: Option<Vec<u8>>,
    /// The path of the kernel's symbol list.
    pub(super) kallsyms: PathBuf,
}

impl RunningKernel {
    pub(super) fn read() -> Self {
        let release = io::read_system_file(Path::new("/proc/sys/kernel/osrelease")).ok();
        Self { build_id: running_build_id(), release, kallsyms: PathBuf::from("/proc/kallsyms") }
    }

    /// True if the running kernel is the recorded one, whose build ID and release are given. Compares build IDs if both
    /// are known, otherwise releases. False if only the build ID of one and the release of the other are known. `None`
    /// if the recording has neither, because its recorder was killed or is still running.
    pub(super) fn is_recorded(&self, build_id: Option<BuildId>, release: Option<&[u8]>) -> Option<bool> {
        if let (Some(recorded), Some(running)) = (build_id, self.build_id) {
            // `hex` leaves out the zeros that may pad a build ID in a recording.
            return Some(files::hex(recorded) == files::hex(running));
        }
        if let (Some(recorded), Some(running)) = (release, &self.release) {
            return Some(running.trim_ascii_end() == recorded.trim_ascii_end());
        }
        let is_unknown = build_id.is_none() && release.is_none();
        if is_unknown { None } else { Some(false) }
    }

    /// True if a symbol list is that of the running kernel. A list in perf's cache may be that even if it is stored
    /// under another kernel's build ID: `perf inject` stores the running kernel's list under the ID of whatever kernel
    /// was recorded.
    pub(super) fn has_list(&self, list: &[u8]) -> bool {
        io::read_system_file(&self.kallsyms).is_ok_and(|own| is_same_kernel(list, &own))
    }
}

/// True if two symbol lists are from the same kernel, perhaps from different boots: they have the same functions at the
/// same distances from each other.
fn is_same_kernel(one: &[u8], other: &[u8]) -> bool {
    let symbols = core_symbols(one);
    !symbols.is_empty() && symbols == core_symbols(other)
}

/// The first symbols of a list that belong to the kernel itself, not to a module: address relative to the first symbol,
/// and name. Absolute addresses can't be compared, because each boot loads the kernel elsewhere. Leaves out
/// symbols outside the kernel's half of the addresses, such as offsets of per-CPU variables.
fn core_symbols(list: &[u8]) -> Vec<(u64, &[u8])> {
    /// How many symbols are compared at most. This is more than enough to tell two kernels apart, even if both were
    /// built from the same source.
    const MAX_SYMBOLS: usize = 20_000;
    let mut symbols = Vec::new();
    let mut first_addr = None;
    for line in list.split(|&byte| byte == b'\n') {
        let is_of_module = line.ends_with(b"]");
        // The kernel's addresses are those with the highest bit set.
        if !is_of_module
            && let Some(symbol) = parse_line(line)
            && symbol.addr >> 63 == 1
        {
            let first_addr = *first_addr.get_or_insert(symbol.addr);
            // `symbol.name` is the position in the line where the name starts.
            symbols.push((symbol.addr.wrapping_sub(first_addr), name_at_start(&line[symbol.name..])));
        }
        if symbols.len() == MAX_SYMBOLS {
            break;
        }
    }
    symbols
}

/// The build ID of the running kernel; `None` if it cannot be read.
pub fn running_build_id() -> Option<BuildId> {
    note_build_id(&io::read_system_file(Path::new("/sys/kernel/notes")).ok()?)
}

/// Returns the build ID in a sequence of ELF notes, which is in a note of type 3 (`NT_GNU_BUILD_ID`). `None` if there
/// is none, or if a note before it is cut off. A note is three words (length of the name, length of the contents,
/// type), then the name and the contents, each padded to a multiple of 4 bytes.
fn note_build_id(mut notes: &[u8]) -> Option<BuildId> {
    const NT_GNU_BUILD_ID: usize = 3;
    /// The length in bytes of the three words before the name.
    const HEADER_LEN: usize = 12;
    let word = |bytes: &[u8], offset: usize| Some(u32::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?) as usize);
    while !notes.is_empty() {
        let (name_len, contents_len, kind) = (word(notes, 0)?, word(notes, 4)?, word(notes, 8)?);
        let contents_start = HEADER_LEN.checked_add(name_len.checked_next_multiple_of(4)?)?;
        let end = contents_start.checked_add(contents_len)?;
        let name = notes.get(HEADER_LEN..HEADER_LEN.checked_add(name_len)?)?;
        let contents = notes.get(contents_start..end)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return BuildId::new(contents);
        }
        // The last note may lack its padding. Then no notes are left.
        notes = notes.get(end.checked_next_multiple_of(4)?..).unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_id_among_the_kernels_notes() {
        let note = |name: &[u8], kind: u32, desc: &[u8]| {
            let mut note = Vec::new();
            for word in [name.len() as u32, desc.len() as u32, kind] {
                note.extend(word.to_ne_bytes());
            }
            note.extend(name);
            note.extend(vec![0; name.len().next_multiple_of(4) - name.len()]);
            note.extend(desc);
            note
        };
        let notes = [note(b"Linux\0", 257, &[1; 4]), note(b"GNU\0", 3, &[9; 20])].concat();
        assert_eq!(note_build_id(&notes), BuildId::new(&[9; 20]));
        assert_eq!(note_build_id(&notes[..40]), None);
    }
}
