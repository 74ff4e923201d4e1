//! Recognizes files that were mapped as code but aren't ELF files. Their symbols can't be read, but a message can say
//! what they are.

/// The kind of a file that was mapped as code but isn't an ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoElf {
    /// A .NET assembly with code compiled ahead of time.
    DotNet,
    /// Any other Windows program or library.
    Pe,
    /// An SBCL core: a memory image that contains the code of all Lisp functions.
    SbclCore,
    /// A macOS program or library.
    MachO,
    /// A jitdump. It is mapped although it isn't code, because runtimes thereby tell perf where it is.
    JitDump,
    /// A ZIP archive, such as a JAR or APK.
    Zip,
    /// Any other file.
    Other,
}

/// How many bytes from the start of a file are needed to recognize it. The headers of a PE image lie within them.
pub(super) const HEAD: u64 = 4096;

/// The bytes with which files of each kind start.
const MAGICS: &[(&[u8], NoElf)] = &[
    (b"LCBS", NoElf::SbclCore),
    (b"SBCL", NoElf::SbclCore),
    (b"\xcf\xfa\xed\xfe", NoElf::MachO),
    (b"\xca\xfe\xba\xbe", NoElf::MachO),
    (b"DTiJ", NoElf::JitDump),
    (b"JiTD", NoElf::JitDump),
    (b"PK\x03\x04", NoElf::Zip),
];

impl NoElf {
    /// Recognizes a file by its first bytes (`head`). `None` if it is an ELF file.
    pub fn recognize(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"\x7fELF") {
            return None;
        }
        let known = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, what)| *what);
        Some(known.or_else(|| pe(head)).unwrap_or(Self::Other))
    }

    /// What messages call a file of this kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::DotNet => "a .NET PE image",
            Self::Pe => "a Windows PE image",
            Self::SbclCore => "an SBCL core",
            Self::MachO => "a macOS Mach-O file",
            Self::JitDump => "a jitdump",
            Self::Zip => "a ZIP archive",
            Self::Other => "a file in an unknown format",
        }
    }
}

/// Recognizes a PE image; `None` for other files. It is an image of .NET if it has a CLI header, which entry 14 of the
/// data directories states.
fn pe(head: &[u8]) -> Option<NoElf> {
    let u16_at = |offset: usize| Some(u16::from_le_bytes(head.get(offset..)?.first_chunk().copied()?));
    let u32_at = |offset: usize| Some(u32::from_le_bytes(head.get(offset..)?.first_chunk().copied()?));
    if !head.starts_with(b"MZ") {
        return None;
    }
    // The number at this offset says where the signature is.
    let signature = usize::try_from(u32_at(0x3c)?).ok()?;
    if !head.get(signature..)?.starts_with(b"PE\0\0") {
        return None;
    }
    const DIRECTORY_OF_DOT_NET: usize = 14;
    // After the signature and the file header, which have 24 bytes, comes the optional header, which ends with the data
    // directories.
    let optional = signature + 24;
    let directories = match u16_at(optional) {
        // In the 64-bit format (PE32+), some fields before the directories are larger.
        Some(0x20b) => optional + 112,
        _ => optional + 96,
    };
    // Each entry has 8 bytes and begins with an address.
    let is_dot_net = u32_at(directories + 8 * DIRECTORY_OF_DOT_NET).is_some_and(|address| address != 0);
    Some(if is_dot_net { NoElf::DotNet } else { NoElf::Pe })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headers of a PE image.
    fn pe_image(is_64: bool, dot_net: bool) -> Vec<u8> {
        let mut image = vec![0; 0x400];
        image[..2].copy_from_slice(b"MZ");
        image[0x3c] = 0x80;
        image[0x80..0x84].copy_from_slice(b"PE\0\0");
        image[0x98..0x9a].copy_from_slice(&if is_64 { 0x20bu16 } else { 0x10b }.to_le_bytes());
        let directories = 0x98 + if is_64 { 112 } else { 96 };
        image[directories + 8 * 14] = u8::from(dot_net) * 8;
        image
    }

    #[test]
    fn files_are_reported_by_their_beginnings() {
        assert_eq!(NoElf::recognize(b"\x7fELF\x02\x01"), None);
        for is_64 in [false, true] {
            assert_eq!(NoElf::recognize(&pe_image(is_64, true)), Some(NoElf::DotNet));
            assert_eq!(NoElf::recognize(&pe_image(is_64, false)), Some(NoElf::Pe));
        }
        assert_eq!(NoElf::recognize(b"LCBS\0\0\0\0"), Some(NoElf::SbclCore));
        assert_eq!(NoElf::recognize(b"DTiJ\x01\0\0\0"), Some(NoElf::JitDump));
        for other in [&b""[..], b"MZ", b"#!/bin/sh", &pe_image(true, true)[..0x82]] {
            assert_eq!(NoElf::recognize(other), Some(NoElf::Other));
        }
    }

    #[test]
    fn cut_headers_are_read_as_far_as_they_go() {
        let image = pe_image(true, true);
        for len in 0..image.len() {
            NoElf::recognize(&image[..len]);
        }
        let mut wild = image;
        wild[0x3c..0x40].copy_from_slice(&[0xff; 4]);
        assert_eq!(NoElf::recognize(&wild), Some(NoElf::Other));
    }
}
