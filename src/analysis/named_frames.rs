//! Creates frames for profiles whose functions were named by another tool, and derives further facts from names and
//! modules.
//!
//! Tools have many ways to spell an unnamed function: an empty name, `[unknown]`, its module (`[libc.so.6]`) or its
//! address (`0x1f3a`). All become [`UNKNOWN`], together with whatever else is known.

use crate::error::{Error, Result};
use crate::model::mapping_kind::MappingKind;
use crate::model::mapping_kind::base_name;
use crate::model::stacks::{Frame, FrameId, FrameKind, FunctionStart, NameId, Profile, StackId, UNKNOWN};
use crate::model::tier::Tier;
use crate::runtimes::{RuntimeSet, Tiers};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What a file says about a frame. Empty strings and zeros stand for what it doesn't say.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatedFrame<'a> {
    /// The function's name as the file spells it.
    pub function: &'a [u8],
    /// The module that contains the function.
    pub module: &'a [u8],
    /// The module's build ID, like [`Frame::build`].
    pub build: &'a [u8],
    /// The function's source file.
    pub file: &'a [u8],
    /// The executed line.
    pub line: u32,
    /// Like [`Frame::column`].
    pub column: u32,
    /// Line and column where the function starts, from 1.
    pub start: (u32, u32),
    /// True if `file` is only known to contain the executed line; the function may start in another file.
    pub is_start_unknown: bool,
    /// The address, like [`Frame::addr`].
    pub addr: Option<u64>,
    /// The kind of code; if `None`, the module determines it.
    pub kind: Option<FrameKind>,
    /// The tier of JIT code; if `None`, the name determines it.
    pub tier: Option<Tier>,
}

/// Creates frames from what files say about them.
#[derive(Debug, Default)]
pub struct NamedFrames {
    tiers: Tiers,
}

impl NamedFrames {
    /// Adds the frame to the profile, unless the profile already has it.
    pub fn frame(&mut self, profile: &mut Profile, stated: StatedFrame<'_>) -> FrameId {
        let StatedFrame { function, module, .. } = stated;
        let is_named = is_name(function, module);
        let name = profile.name(if is_named { function } else { UNKNOWN });
        let kind = if is_named {
            stated.kind.unwrap_or_else(|| kind_of_function(module))
        } else {
            match stated.kind {
                // If the file states nothing more specific, as files written by older versions of jitgraft, the module
                // determines the kind.
                None | Some(FrameKind::User | FrameKind::Unknown) => kind_of_unnamed(module),
                Some(kind) => kind.unnamed(),
            }
        };
        let mut tier = None;
        if is_named && kind == FrameKind::Jit {
            tier = stated.tier.or_else(|| self.tiers.find(name, function, RuntimeSet::default()));
        }
        // A file may give an address (`0x1f3a`) in place of the function's name. It becomes the frame's address.
        let mut frame = Frame {
            module: intern_if_known(profile, module),
            build: intern_if_known(profile, stated.build),
            file: intern_if_known(profile, stated.file),
            addr: stated.addr.or_else(|| address(function)),
            tier,
            ..Frame::new(name, kind)
        };
        // Keep lines only if the file is known: they mean nothing without it.
        if frame.file.is_some() {
            let (line, column) = stated.start;
            frame.line = stated.line;
            frame.column = stated.column;
            if !stated.is_start_unknown {
                frame.start = FunctionStart { file: frame.file, line, column };
            }
        }
        profile.frame(frame)
    }
}

/// Interns a name in the profile; `None` if the name is empty.
fn intern_if_known(profile: &mut Profile, name: &[u8]) -> Option<NameId> {
    if name.is_empty() { None } else { Some(profile.name(name)) }
}

/// Frames by location ID, for formats like pprof. A location is a code address: a function, and possibly calls inlined
/// there.
///
/// Samples refer to locations, and a location may have any number of lines. A small file could therefore produce an
/// enormous number of frames, so that number is limited.
#[derive(Debug)]
pub struct LocationFrames {
    /// The frames of all locations.
    frames: Vec<FrameId>,
    /// For each location, the range of its frames in `frames`.
    ranges: FxHashMap<u64, Range<usize>>,
    /// What error messages call the part of the input that lists locations: `file` or `dictionary`.
    owner: &'static str,
    /// How many more frames the samples of this input may have.
    left: u64,
}

/// The maximum number of frames per byte of input. A sample's reference to a location takes at least one byte, and
/// nobody has seen more than a hundred calls inlined at one address.
pub(crate) const FRAMES_PER_BYTE: u64 = 100;

impl LocationFrames {
    /// Starts without any locations. `bytes` is the size of the input, which limits the number of frames.
    pub fn new(owner: &'static str, bytes: usize) -> Self {
        Self { frames: Vec::new(), ranges: FxHashMap::default(), owner, left: FRAMES_PER_BYTE * bytes as u64 }
    }

    /// Adds the location with the ID `number`. `lines` are its functions, innermost first; all but the outermost were
    /// inlined. `without_lines` describes the location apart from its functions. It becomes the location's only frame
    /// if `lines` is empty. Otherwise only its kind of code is used: the outermost function gets that kind.
    pub fn add<'a>(
        &mut self,
        number: u64,
        without_lines: StatedFrame<'a>,
        lines: impl Iterator<Item = StatedFrame<'a>>,
        named: &mut NamedFrames,
        profile: &mut Profile,
    ) {
        let start = self.frames.len();
        let mut lines = lines.peekable();
        if lines.peek().is_none() {
            self.frames.push(named.frame(profile, without_lines));
        }
        while let Some(line) = lines.next() {
            let kind = if lines.peek().is_some() { Some(FrameKind::Inlined) } else { without_lines.kind };
            self.frames.push(named.frame(profile, StatedFrame { kind, ..line }));
        }
        self.ranges.insert(number, start..self.frames.len());
    }

    /// Builds the stack of a sample from the IDs of its locations, innermost first. `None` if there are no locations.
    /// Fails if a location doesn't exist, or if the stack has more frames than the samples of the input may still have
    /// in total (`left`).
    pub fn stack(&mut self, locations: &[u64], profile: &mut Profile) -> Result<Option<StackId>> {
        let mut stack = None;
        for number in locations.iter().rev() {
            let Some(range) = self.ranges.get(number).cloned() else {
                return Err(Error::new(format!(
                    "the sample refers to location {number}, which the {} does not have",
                    self.owner
                )));
            };
            let Some(left) = self.left.checked_sub(range.len() as u64) else {
                return Err(Error::new("the samples have more frames than a file of this size can contain"));
            };
            self.left = left;
            for frame in self.frames[range].iter().rev() {
                stack = Some(profile.stack(stack, *frame));
            }
        }
        Ok(stack)
    }
}

/// True if `function` is a real name, rather than one of the ways to spell a function without a name.
fn is_name(function: &[u8], module: &[u8]) -> bool {
    let base = base_name(module);
    let bracketed = function.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
    let is_module = bracketed.is_some_and(|name| !name.is_empty() && (name == base || function == base));
    !function.is_empty() && function != UNKNOWN && !is_module && address(function).is_none()
}

/// The address that a file gives in place of a function's name, such as `0x1f3a`; `None` for other names.
fn address(function: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(function.strip_prefix(b"0x")?).ok()?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

/// The kind of code of a named function, derived from its module.
fn kind_of_function(module: &[u8]) -> FrameKind {
    match MappingKind::from_path(module) {
        MappingKind::Unnamed => FrameKind::User,
        kind if kind.is_jit_object() => FrameKind::Jit,
        kind if kind.is_kernel_object() => FrameKind::Kernel,
        _ => FrameKind::User,
    }
}

/// The kind of code of an unnamed function, derived from its module. For memory without a file it is
/// [`FrameKind::Anonymous`], because it isn't known what runs there. The same goes for a perf map as the module: perf
/// attributes all such memory to the perf map that would name the code there.
pub fn kind_of_unnamed(module: &[u8]) -> FrameKind {
    match MappingKind::from_path(module) {
        MappingKind::Unnamed => FrameKind::Unknown,
        kind if kind.is_perf_map() || kind.may_hold_jit_code() => FrameKind::Anonymous,
        _ => kind_of_function(module).unnamed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, module: &str) -> (String, FrameKind, Option<u64>) {
        let mut profile = Profile::new();
        let stated = StatedFrame { function: function.as_bytes(), module: module.as_bytes(), ..StatedFrame::default() };
        let id = NamedFrames::default().frame(&mut profile, stated);
        let frame = *profile.frame_of(id);
        (String::from_utf8_lossy(profile.name_of(frame.name)).into_owned(), frame.kind, frame.addr)
    }

    #[test]
    fn a_function_without_a_name_is_spelled_in_many_ways() {
        let unknown = |kind, addr| ("[unknown]".to_owned(), kind, addr);
        assert_eq!(frame("", ""), unknown(FrameKind::Unknown, None));
        assert_eq!(frame("[unknown]", "/bin/a"), unknown(FrameKind::NativeUnnamed, None));
        assert_eq!(frame("[libc.so.6]", "/lib/libc.so.6"), unknown(FrameKind::NativeUnnamed, None));
        assert_eq!(frame("[vdso]", "[vdso]"), unknown(FrameKind::NativeUnnamed, None));
        for module in ["//anon", "[anon:JIT code]", "/memfd:x (deleted)", "/tmp/perf-77.map", "[stack]"] {
            assert_eq!(frame("[unknown]", module), unknown(FrameKind::Anonymous, None), "{module}");
        }
        for module in ["/x/jitted-77-3.so", "jit-77.dump", "[JIT] tid 77", "jit"] {
            assert_eq!(frame("[unknown]", module), unknown(FrameKind::JitUnnamed, None), "{module}");
        }
        assert_eq!(frame("0x1f", ""), unknown(FrameKind::Unknown, Some(0x1f)));
        assert_eq!(frame("[kernel.kallsyms]", "[kernel.kallsyms]"), unknown(FrameKind::Kernel, None));
        for name in ["[GC]", "[]", "0x", "0xyz", "f"] {
            assert_eq!(frame(name, "").0, name);
        }
    }

    #[test]
    fn a_module_shows_the_sort_of_code() {
        let kind = |module| frame("f", module).1;
        for module in ["/tmp/perf-77.map", "/x/jitted-77-3.so", "jit-77.dump", "//anon", "[JIT] tid 77", "jit", "[jit]"]
        {
            assert_eq!(kind(module), FrameKind::Jit, "{module}");
        }
        for module in ["[kernel.kallsyms]", "[guest.kernel.kallsyms]", "/lib/modules/6.1/kernel/fs/ext4.ko", "[ext4]"] {
            assert_eq!(kind(module), FrameKind::Kernel, "{module}");
        }
        for module in ["", "/bin/node", "/bin/jit", "[vdso]", "libc.so.6"] {
            assert_eq!(kind(module), FrameKind::User, "{module}");
        }
    }
}
