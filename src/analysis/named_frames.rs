//! Frames of profiles in which another tool has named the functions: the facts that name and module contain.
//!
//! A function without a name is spelled in many ways: empty, `[unknown]`, after its module (`[libc.so.6]`) or its
//! address (`0x1f3a`). All become [`UNKNOWN`] with what is known besides.

use crate::error::{Error, Result};
use crate::model::backing::Backing;
use crate::model::backing::base_name;
use crate::model::stacks::{Frame, FrameId, FrameKind, FunctionStart, Profile, StackId, UNKNOWN};
use crate::model::tier::Tier;
use crate::runtimes::{RuntimeSet, Tiers};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The data that a file states about a frame.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatedFrame<'a> {
    /// The function, as the file spells it.
    pub function: &'a [u8],
    /// The module; empty: not reported.
    pub module: &'a [u8],
    /// The build ID of the module, as [`Frame::build`] has it; empty: not reported.
    pub build: &'a [u8],
    /// The source file of the function; empty: not reported.
    pub file: &'a [u8],
    /// The source line that ran, 0 if not reported.
    pub line: u32,
    /// As [`Frame::column`] has it.
    pub column: u32,
    /// Line and column at which the function starts, from 1; 0 if not reported.
    pub start: (u32, u32),
    /// The address, as [`Frame::addr`] has it.
    pub addr: Option<u64>,
    /// Its kind, if the file gives it; else its module does.
    pub kind: Option<FrameKind>,
    /// The tier of JIT code, if the file gives it; else its name does.
    pub tier: Option<Tier>,
}

/// Makes frames from the text of files.
#[derive(Debug, Default)]
pub struct NamedFrames {
    tiers: Tiers,
}

impl NamedFrames {
    /// The frame's number in that profile.
    pub fn frame(&mut self, profile: &mut Profile, told: StatedFrame<'_>) -> FrameId {
        let StatedFrame { function, module, file, line, .. } = told;
        let named = is_name(function, module);
        let addr = told.addr.or_else(|| address(function));
        let name = profile.name(if named { function } else { UNKNOWN });
        // Older files of ours have no kinds of code without a name.
        let said = told.kind.filter(|kind| named || !matches!(kind, FrameKind::User | FrameKind::Unknown));
        let kind = match said {
            Some(kind) if named => kind,
            Some(kind) => kind.unnamed(),
            None if named => kind_of_function(module),
            None => kind_of_unnamed(module),
        };
        let tier = (kind == FrameKind::Jit && named)
            .then(|| told.tier.or_else(|| self.tiers.of(name, function, RuntimeSet::default())));
        let tier = tier.flatten();
        let known = |bytes: &[u8]| (!bytes.is_empty()).then(|| profile.name(bytes));
        let [module, build, file] = [module, told.build, file].map(known);
        let (line, column) = if file.is_some() { (line, told.column) } else { (0, 0) };
        let start = match file {
            Some(_) => FunctionStart { file, line: told.start.0, column: told.start.1 },
            None => FunctionStart::default(),
        };
        profile.frame(Frame { module, build, file, line, column, start, addr, tier, ..Frame::new(name, kind) })
    }
}

/// The frames of the locations that samples refer to, by their numbers: a location is a function and the calls that were
/// expanded in it.
///
/// Samples name locations by number and a location names any number of lines, so a small file can ask for much: there is
/// an end to it.
#[derive(Debug)]
pub struct LocationFrames {
    /// Of all locations, in one list.
    frames: Vec<FrameId>,
    of: FxHashMap<u64, Range<usize>>,
    /// The name of the input in messages.
    owner: &'static str,
    /// The number of frames that may still be read.
    left: u64,
}

/// The number of frames that may come of each byte. A sample names a location by at least one byte, and more than a
/// hundred calls expanded in one place nobody has seen.
pub(crate) const FRAMES_PER_BYTE: u64 = 100;

impl LocationFrames {
    /// None yet, of this many bytes.
    pub fn of(owner: &'static str, bytes: usize) -> Self {
        Self { frames: Vec::new(), of: FxHashMap::default(), owner, left: FRAMES_PER_BYTE * bytes as u64 }
    }

    /// Adds a location: its frame where no function is known, and its functions, the innermost first.
    pub fn add<'a>(
        &mut self,
        number: u64,
        whole: StatedFrame<'a>,
        lines: impl Iterator<Item = StatedFrame<'a>>,
        named: &mut NamedFrames,
        profile: &mut Profile,
    ) {
        let (from, mut lines) = (self.frames.len(), lines.peekable());
        if lines.peek().is_none() {
            self.frames.push(named.frame(profile, whole));
        }
        while let Some(line) = lines.next() {
            let kind = if lines.peek().is_some() { Some(FrameKind::Inlined) } else { whole.kind };
            self.frames.push(named.frame(profile, StatedFrame { kind, ..line }));
        }
        self.of.insert(number, from..self.frames.len());
    }

    /// The stack of these locations, the leaf's first.
    pub fn stack(&mut self, locations: &[u64], profile: &mut Profile) -> Result<Option<StackId>> {
        let mut stack = None;
        for number in locations.iter().rev() {
            let missing = || Error::new(format!("is of location {number}, which the {} does not have", self.owner));
            let frames = self.of.get(number).cloned().ok_or_else(missing)?;
            let too_many = || Error::new("the samples have more frames than a file of this size can contain");
            self.left = self.left.checked_sub(frames.len() as u64).ok_or_else(too_many)?;
            for frame in self.frames[frames].iter().rev() {
                stack = Some(profile.stack(stack, *frame));
            }
        }
        Ok(stack)
    }
}

fn is_name(function: &[u8], module: &[u8]) -> bool {
    let base = base_name(module);
    let bracketed = function.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
    let is_module = bracketed.is_some_and(|name| !name.is_empty() && (name == base || function == base));
    !function.is_empty() && function != UNKNOWN && !is_module && address(function).is_none()
}

/// The address that stands for a name.
fn address(function: &[u8]) -> Option<u64> {
    let digits = function.strip_prefix(b"0x").filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The kind of a function with a name.
fn kind_of_function(module: &[u8]) -> FrameKind {
    match Backing::of(module) {
        Backing::Unnamed => FrameKind::User,
        backing if backing.is_jit_object() => FrameKind::Jit,
        backing if backing.is_kernel_object() => FrameKind::Kernel,
        _ => FrameKind::User,
    }
}

/// The kind of code without a name, by its module. Memory that no file backs does not show what runs there,
/// and neither does a map's name: perf calls all such memory after the map that would cover it.
pub fn kind_of_unnamed(module: &[u8]) -> FrameKind {
    match Backing::of(module) {
        Backing::Unnamed => FrameKind::Unknown,
        backing if backing.is_perf_map() || backing.may_hold_jit_code() => FrameKind::Anonymous,
        _ => kind_of_function(module).unnamed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, module: &str) -> (String, FrameKind, Option<u64>) {
        let mut profile = Profile::new();
        let told = StatedFrame { function: function.as_bytes(), module: module.as_bytes(), ..StatedFrame::default() };
        let id = NamedFrames::default().frame(&mut profile, told);
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
