//! Archives (`pack`): a tar file as it is, or one whose manifest fits the files in it.

use super::framed::Bytes;
use crate::jit::SourceOptions;
use crate::pipeline::archive::{Manifest, PackedFile, ROOT, Role, is_archive, read};
use sha2::{Digest, Sha256};
use std::path::{Component, Path};
use tar::{Builder, EntryType, Header};

/// The first byte states what the others are. Whatever was read is in the archive once, and below its path.
///
/// ```text
/// bit 0 is 0: a tar file
/// bit 0 is 1: u8 changes, each: place u16, value u8      then files, each: kind u8, path u8, len u8, bytes
/// bit 1 is 0: checksums of headers are mended
/// ```
pub(super) fn archive(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let how = bytes.byte();
    let mut tar = if how & 1 == 0 { bytes.0.to_vec() } else { tar_of(bytes) };
    if how & 2 == 0 {
        mend_checksums(&mut tar);
    }
    let _ = is_archive(&tar);
    let path = Path::new("/nowhere/run.tar.zst");
    let Ok(packed) = read(&tar[..], path, 0) else { return };
    let mut whole = packed.recording().map_or(0, |recording| recording.len());
    let mut paths = Vec::new();
    for (path, stream) in packed.streams() {
        whole += stream.len();
        paths.push(path);
    }
    assert!(whole <= tar.len(), "a file was read twice");
    let mut options = SourceOptions::default();
    packed.add_to_sources(&mut options);
    let SourceOptions { jitdump, perf_map, jit_log, search, .. } = options;
    paths.extend([jitdump, perf_map, jit_log].into_iter().flatten().map(|file| file.path));
    paths.extend(search.symfs.into_iter().chain(search.debug_dirs));
    for found in paths {
        let below = found.strip_prefix(path).expect("a path in the archive");
        assert!(below.components().all(|part| matches!(part, Component::Normal(_))), "{} leads out", found.display());
    }
}

const PATHS: &[&str] = &[
    "data",
    "data.1",
    "jit-77.dump",
    "perf-77.map",
    "root/usr/bin/node",
    ".build-id/ab/cdef/elf",
    "kcore_dir/kallsyms",
    "root/a/../../b",
    "/etc/passwd",
    "root//x",
    "manifest.json",
];

const ROLES: &[Role] = &[
    Role::Recording,
    Role::Stream,
    Role::Jitdump,
    Role::PerfMap,
    Role::Log,
    Role::Program,
    Role::Debug,
    Role::Kallsyms,
    Role::Script,
    Role::Source,
];

/// The tar file of an archive with the files that the bytes describe, and some bytes changed.
fn tar_of(mut bytes: Bytes<'_>) -> Vec<u8> {
    const MOST_FILES: usize = 20;
    let changes: Vec<[u8; 3]> = (0..bytes.byte() % 4).map(|_| [bytes.byte(), bytes.byte(), bytes.byte()]).collect();
    let mut files = Vec::new();
    let mut tar = Builder::new(Vec::new());
    while !bytes.is_empty() && files.len() < MOST_FILES {
        let (kind, path, len) = (usize::from(bytes.byte()), usize::from(bytes.byte()), bytes.byte());
        let content = bytes.take(len.into());
        let path = match PATHS.get(path) {
            Some(path) => (*path).to_owned(),
            // Long names are in an entry of their own.
            None => format!("{ROOT}/{}", "n".repeat(path)),
        };
        // What is not listed is an entry of another type.
        if kind >= 240 {
            append(&mut tar, EntryType::new(b'0' + (kind % 16) as u8), &path, &content[..content.len().min(kind % 3)]);
            continue;
        }
        append(&mut tar, EntryType::Regular, &path, content);
        let sha256 = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        let (role, size) = (ROLES[kind % ROLES.len()], content.len() as u64);
        let modified = (i64::from(len) << (kind % 64), kind as i64);
        files.push(PackedFile { path, role, pid: Some(kind as i32), build_id: None, modified, size, sha256 });
    }
    let members = tar.into_inner().unwrap();
    let mut tar = Builder::new(Vec::new());
    append(&mut tar, EntryType::Regular, "jitgraft-pack", b"x\n");
    let listed = serde_json::to_vec(&Manifest::new(None, None, files)).unwrap();
    append(&mut tar, EntryType::Regular, "manifest.json", &listed);
    // The end of a tar file is two empty blocks.
    let mut all = tar.into_inner().unwrap();
    all.truncate(all.len() - 1024);
    all.extend(members);
    for [low, high, value] in changes {
        let at = usize::from(u16::from_le_bytes([low, high])) % all.len();
        all[at] = value;
    }
    all
}

fn append(tar: &mut Builder<Vec<u8>>, entry: EntryType, path: &str, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_entry_type(entry);
    header.set_mode(0o600);
    header.set_size(content.len() as u64);
    // Paths that lead elsewhere are refused here, too: these are written as they are.
    if tar.append_data(&mut header, path, content).is_err() {
        let name = &mut header.as_old_mut().name;
        let len = path.len().min(name.len());
        name[..len].copy_from_slice(&path.as_bytes()[..len]);
        header.set_cksum();
        tar.append(&header, content).unwrap();
    }
}

/// Makes the checksum of each header right.
fn mend_checksums(tar: &mut [u8]) {
    const BLOCK: usize = 512;
    for block in tar.chunks_exact_mut(BLOCK).filter(|block| &block[257..262] == b"ustar") {
        let mut header = Header::new_gnu();
        header.as_mut_bytes().copy_from_slice(block);
        header.set_cksum();
        block.copy_from_slice(header.as_bytes());
    }
}
