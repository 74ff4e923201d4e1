//! DTrace's output for aggregations such as `@[ustack()] = count()`: a stack, innermost frame first, followed by its
//! count.
//!
//! ```text
//!   node
//!               libc.so.1`read+0x15
//!               node`main+0x20
//!                12
//! ```
//!
//! Lines between a count and the next stack are further keys of the aggregation, such as `execname`; the last of them
//! becomes the thread's name. Lines before the first blank line are DTrace's own messages.

use crate::analysis::named_frames::{NamedFrames, StatedFrame};
use crate::bytes::digits::decimal;
use crate::bytes::lines::lines;
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::stacks::{FrameKind, Profile, Row, Track, Unit};

/// Names of the kernel modules of Solaris, FreeBSD and macOS.
const KERNELS: &[&[u8]] = &[b"unix", b"genunix", b"kernel", b"mach_kernel"];

/// True if an input is DTrace's output: after a blank line there are frames such as ``module`function``, then a number.
pub fn sniff(head: &[u8]) -> bool {
    // A quick test for texts in other formats: every frame contains a backquote or is an address.
    if memchr::memchr(b'`', head).is_none() && memchr::memmem::find(head, b"0x").is_none() {
        return false;
    }
    let lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let (mut frames, mut keys) = (0, 0);
    for line in lines.skip_while(|line| !line.is_empty()).filter(|line| !line.is_empty()) {
        if is_frame(line) {
            frames += 1;
        } else if decimal(line).is_some() {
            return frames > 0;
        } else if frames == 0 && keys < 4 {
            // Up to four other keys of the aggregation may precede the frames. With more lines before the first frame,
            // the text is in another format.
            keys += 1;
        } else {
            return false;
        }
    }
    // `head` ends before the stack's count. A single frame isn't proof enough then.
    frames > 1
}

fn is_frame(line: &[u8]) -> bool {
    match line.strip_prefix(b"0x") {
        Some(digits) if !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit) => true,
        _ => line.contains(&b'`'),
    }
}

/// Reads all stacks and their counts. Damaged stacks are skipped with a warning.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut profile = Profile::empty(options.keep);
    let series = profile.series_named("samples", Unit::Samples);
    let (mut named, mut skipped) = (NamedFrames::default(), Skipped::new("stack"));
    let (mut frames, mut track) = (Vec::new(), Track::default());
    // True until the first empty line. What comes before it isn't part of the stacks.
    let mut in_header = true;
    for (offset, line) in lines(bytes) {
        let line = line.trim_ascii_start();
        if line.is_empty() {
            in_header = false;
        } else if in_header {
            continue;
        } else if let Some(weight) = decimal(line) {
            if frames.is_empty() {
                skipped.add(Error::new("a line with a count has no stack before it").at_offset(offset));
                continue;
            }
            // A line with a count ends the stack above it. The stack's frames were read innermost first, but a stack is
            // built from the outermost one.
            let mut stack = None;
            for frame in frames.drain(..).rev() {
                stack = Some(profile.stack(stack, frame));
            }
            let track = profile.track(std::mem::take(&mut track));
            profile.push(series, Row { track, stack, weight, count: weight, time: None });
        } else if frames.is_empty() && !is_frame(line) {
            // A key of the aggregation that precedes the stack. The last key is usually the program's name.
            track.comm = line.to_vec();
        } else {
            frames.push(named.frame(&mut profile, stated_frame(line)));
        }
    }
    if !frames.is_empty() {
        skipped.add(Error::new("the last stack has no count; the text is truncated").at_offset(bytes.len() as u64));
    }
    warnings.extend(skipped.into_warning());
    Ok(profile)
}

/// Parses a frame such as ``module`function+0x15``.
fn stated_frame(line: &[u8]) -> StatedFrame<'_> {
    let (module, function) = match memchr::memchr(b'`', line) {
        Some(tick) => (&line[..tick], &line[tick + 1..]),
        None => (&b""[..], line),
    };
    // Cut off the offset in the function, unless the function has no name and nothing would be left.
    let end = match memchr::memmem::rfind(function, b"+0x") {
        None | Some(0) => function.len(),
        Some(offset) => offset,
    };
    let kind = if KERNELS.contains(&module) { Some(FrameKind::Kernel) } else { None };
    StatedFrame { function: &function[..end], module, kind, ..StatedFrame::default() }
}
