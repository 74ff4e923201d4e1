//! Reads archives. It is an error if a file isn't listed in the manifest, differs from the manifest, or isn't a regular
//! file. Of tar's extensions, only long names are supported.

use super::manifest::{MANIFEST, MARK, MOST_FILES, Manifest, PackedFile, Role};
use crate::error::{Error, Result};
use crate::io::{Archive, Bytes};
use crate::jit::{GivenFile, SourceOptions};
use crate::model::Pid;
use crate::symbolize::symbols::files::SearchOptions;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tar::{Entries, Entry, EntryType};

/// The directory in an archive that has files of the recorded machine, each at its absolute path: `root/usr/bin/node`.
pub(crate) const ROOT: &str = "root";

/// The maximum size in bytes of the archive's first file, and of the manifest.
const LONGEST_TEXT: u64 = 64 << 20;
/// The maximum length in bytes of a file name.
const LONGEST_NAME: u64 = 1 << 13;

/// The maximum number of entries that aren't files, such as directories. The manifest doesn't list them, and they take
/// next to no space, so that without a limit, a small archive could keep its reader busy for as long as it likes.
const MOST_OTHERS: usize = 2 * MOST_FILES;

/// True if decompressed data starts like an archive.
pub(crate) fn is_archive(start: &[u8]) -> bool {
    let is_tar = start.get(257..262) == Some(b"ustar");
    is_tar && start.strip_prefix(MARK.as_bytes()).is_some_and(|rest| rest.starts_with(&[0]))
}

/// Reads an archive. `path` is the file's path, and `owner` the ID of the user who owns the file.
pub(crate) fn read(reader: impl Read, path: &Path, owner: u32) -> Result<Packed> {
    let mut tar = tar::Archive::new(reader);
    // `raw(true)`: entries that only have the long name of the next file are listed, too. `PlainFiles` reads them, and
    // limits their number and length.
    let mut entries = PlainFiles { entries: tar.entries().map_err(damaged)?.raw(true), others: 0 };
    // The first file only marks the archive as jitgraft's. Its text is for people, so it isn't checked.
    read_text(&mut entries, MARK)?;
    let manifest = Manifest::parse(&read_text(&mut entries, MANIFEST)?)?;
    // The files of the manifest that haven't been found in the archive yet.
    let mut expected: BTreeMap<&str, &PackedFile> = manifest.files.iter().map(|file| (&file.path[..], file)).collect();
    let mut archive = Archive::new(path, owner);
    while let Some((name, entry)) = entries.next()? {
        let unlisted = || Error::new(format!("contains {name:?}, which its manifest does not list"));
        let file = expected.remove(&name[..]).ok_or_else(unlisted)?;
        extract(&mut archive, file, entry)?;
    }
    if let Some(missing) = expected.keys().next() {
        return Err(Error::new(format!("is truncated: {missing} is missing")));
    }
    Ok(Packed { archive: archive.open(), manifest })
}

/// Extracts a file and checks it against its entry in the manifest.
fn extract(archive: &mut Archive, file: &PackedFile, entry: impl Read) -> Result<()> {
    // One byte more than the manifest says is enough to notice that the file is larger.
    let mut hashed = Hashed { reader: entry.take(file.size.saturating_add(1)), hash: Sha256::new(), size: 0 };
    // `add` reads the file through `hashed`, which counts and hashes its bytes.
    archive.add(Path::new(&file.path), file.modified, &mut hashed)?;
    let hash: String = hashed.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if (hashed.size, &hash) != (file.size, &file.sha256) {
        return Err(Error::new(format!("{} does not match the manifest; the archive is damaged", file.path)));
    }
    Ok(())
}

/// Reads the next file, which must have this name.
fn read_text(entries: &mut PlainFiles<'_, impl Read>, name: &str) -> Result<Vec<u8>> {
    match entries.next()? {
        Some((found, entry)) if found == name => read_bounded(entry, LONGEST_TEXT),
        _ => Err(Error::new(format!("is a damaged archive: it does not start with {MARK} and {MANIFEST}"))),
    }
}

/// Reads all of an entry. Fails if it is longer than `most` bytes.
fn read_bounded(mut entry: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    (&mut entry).take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(Error::new("contains a name or manifest that is too long")) } else { Ok(bytes) }
}

fn damaged(error: io::Error) -> Error {
    Error::new("is a damaged archive (tar)").because(error)
}

/// An iterator over the regular files in a tar file, with their names.
struct PlainFiles<'a, R: Read> {
    entries: Entries<'a, R>,
    /// The number of entries so far that are not files.
    others: usize,
}

impl<'a, R: Read> PlainFiles<'a, R> {
    /// The next regular file with its name; `None` at the end. Directories are skipped. A name that is too long for the
    /// file's own header is in an extra entry before the file. Fails on any other kind of entry.
    fn next(&mut self) -> Result<Option<(String, Entry<'a, R>)>> {
        let mut long_name = None;
        for entry in &mut self.entries {
            let entry = entry.map_err(damaged)?;
            // Entries for directories and long names take next to no space, so a small archive could keep us busy with
            // millions of them.
            if self.others > MOST_OTHERS {
                return Err(Error::new(format!(
                    "contains more than {MOST_OTHERS} entries for directories and long names"
                )));
            }
            let name = || long_name.clone().unwrap_or_else(|| entry.path_bytes().into_owned());
            match entry.header().entry_type() {
                EntryType::GNULongName => {
                    self.others += 1;
                    let mut name = read_bounded(entry, LONGEST_NAME)?;
                    // The name ends with NUL.
                    name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
                    long_name = Some(name);
                }
                EntryType::Regular => {
                    let name =
                        String::from_utf8(name()).map_err(|_| Error::new("contains a name that is not UTF-8"))?;
                    return Ok(Some((name, entry)));
                }
                // jitgraft writes no directories, but people may have unpacked the archive and packed it again with
                // tar.
                EntryType::Directory if entry.size() == 0 => {
                    self.others += 1;
                    // A long name before the directory was its own, not that of the next file.
                    long_name = None;
                }
                other => {
                    let (name, what) = (String::from_utf8_lossy(&name()).into_owned(), kind_of(other));
                    return Err(Error::new(format!("contains {name:?}, which is {what}, not a regular file")));
                }
            }
        }
        Ok(None)
    }
}

fn kind_of(entry: EntryType) -> &'static str {
    match entry {
        EntryType::Symlink | EntryType::Link => "a link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a pipe",
        _ => "a special tar entry",
    }
}

/// A reader that counts and hashes the bytes that are read through it.
struct Hashed<R> {
    reader: R,
    hash: Sha256,
    size: u64,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(into)?;
        self.hash.update(&into[..len]);
        self.size += len as u64;
        Ok(len)
    }
}

/// The recording and the other files in an archive that was opened.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    archive: Arc<Archive>,
    manifest: Manifest,
}

impl Packed {
    /// The main file of the recording.
    pub(crate) fn recording(&self) -> Result<Bytes> {
        self.bytes(Role::Recording).next().ok_or_else(|| Error::new("contains no recording"))
    }

    /// The files of the recording apart from the main one, in order. They contain further streams of records.
    pub(crate) fn streams(&self) -> impl Iterator<Item = (PathBuf, Bytes)> {
        let paths = self.files_with_role(Role::Stream).map(|file| self.archive.path().join(&file.path));
        paths.zip(self.bytes(Role::Stream))
    }

    /// Lets binaries be searched for in the archive, after the directories that the user named.
    pub(crate) fn add_to_search(&self, search: &mut SearchOptions) {
        search.is_packed = true;
        search.symfs.push(self.archive.path().join(ROOT));
        search.debug_dirs.push(self.archive.path().to_owned());
    }

    /// Adds the archive's jitdumps, perf maps and logs to the sources of JIT code, each for its process.
    pub(crate) fn add_to_sources(&self, sources: &mut SourceOptions) {
        self.add_to_search(&mut sources.search);
        let SourceOptions { jitdump, perf_map, jit_log, .. } = sources;
        for (role, list) in [(Role::Jitdump, jitdump), (Role::PerfMap, perf_map), (Role::Log, jit_log)] {
            list.extend(
                self.files_with_role(role)
                    .map(|file| GivenFile { path: self.archive.path().join(&file.path), pid: file.pid.map(Pid) }),
            );
        }
    }

    fn files_with_role(&self, role: Role) -> impl Iterator<Item = &PackedFile> {
        self.manifest.files.iter().filter(move |file| file.role == role)
    }

    fn bytes(&self, role: Role) -> impl Iterator<Item = Bytes> {
        self.files_with_role(role).filter_map(|file| self.archive.bytes(Path::new(&file.path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tar::{Builder, Header};

    #[test]
    fn directories_without_an_end_are_refused() {
        let mut directory = Header::new_gnu();
        directory.set_path("root/").unwrap();
        directory.set_entry_type(EntryType::Directory);
        directory.set_size(0);
        directory.set_cksum();
        let listed = br#"{"version": 1, "machine": null, "host": null, "files": []}"#;
        let mut tar = Builder::new(Vec::new());
        for (name, content) in [(MARK, &b""[..]), (MANIFEST, &listed[..])] {
            let mut header = Header::new_gnu();
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, name, content).unwrap();
        }
        let start = tar.into_inner().unwrap();
        // The end of an archive is two empty blocks.
        let start = &start[..start.len() - 1024];
        let thousand = directory.as_bytes().repeat(1000);
        let followed_by = |thousands: usize| {
            let mut source: Box<dyn Read> = Box::new(start);
            for _ in 0..thousands {
                source = Box::new(source.chain(&thousand[..]));
            }
            read(source, Path::new("run.tar.zst"), 0)
        };
        followed_by(1).unwrap();
        let said = followed_by(MOST_OTHERS / 1000 + 1).unwrap_err().to_string();
        assert!(said.contains("more than 200000 entries for directories"), "{said}");
    }
}
