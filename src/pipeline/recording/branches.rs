//! Converts branch stacks (`perf record -b`, `--call-graph lbr`) to frames.

use super::frame_location::ModeFrame;
use crate::formats::perf_data::{Branch, Branches, EventAttr, Sample};
use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr};
use linux_perf_event_reader::constants as abi;

/// The maximum size of a call instruction in bytes.
const LONGEST_CALL: u64 = 8;
/// The maximum length of a loop that is recognized, in branches. No CPU records enough branches for two iterations of a
/// longer loop.
const LONGEST_LOOP: usize = 64;

/// Adds the branches that the CPU recorded before a sample to the sample's stack (`frames`, innermost first), as `perf
/// report --branch-history` does. They replace the innermost frame, as if the sample's caller had called them. Each
/// branch becomes two frames: its target and its source. Repeated iterations of a loop are left out, and so are callers
/// whose calls are among the branches.
pub(super) fn put_branch_history(branches: Branches<'_>, frames: &mut Vec<ModeFrame>) {
    let mut branches: Vec<Branch> = branches.iter().collect();
    // The number of innermost frames that the branches replace. The sample's own frame is one of these frames, because
    // the target of the newest branch is in the same function.
    let mut replaced = usize::from(!branches.is_empty() && !frames.is_empty());
    // The other frames that are replaced are callers whose call is among the branches. Both lists go outward: branches
    // are ordered from the newest to the oldest, and frames from the innermost caller.
    for branch in &branches {
        if frames.get(replaced).is_some_and(|(_, frame)| is_call(branch, frame.raw())) {
            replaced += 1;
        }
    }
    remove_loops(&mut branches);
    // The CPU doesn't record whether it ran kernel or user code at a branch, so the mode is unknown.
    let addresses = branches.iter().flat_map(|branch| [branch.to, branch.from]);
    let history: Vec<ModeFrame> = addresses.map(|addr| (CpuMode::Unknown, FrameAddr::Ip(addr))).collect();
    frames.splice(..replaced, history);
}

/// True if the branch may be the call that returns to the address `returns`, because its instruction is directly before
/// that address.
fn is_call(branch: &Branch, returns: Addr) -> bool {
    branch.from < returns && branch.from.0 >= returns.0.saturating_sub(LONGEST_CALL)
}

/// Of each loop in the branches, keeps only the newest iteration.
fn remove_loops(branches: &mut Vec<Branch>) {
    let same = |a: &Branch, b: &Branch| (a.from, a.to) == (b.from, b.to);
    let mut start = 1;
    while start < branches.len() {
        // Find the length of an iteration: that many branches from `start` on repeat those directly before `start`,
        // which are newer.
        let longest = start.min(branches.len() - start).min(LONGEST_LOOP);
        let iteration_length = (1..=longest).find(|&length| {
            let newer = &branches[start - length..start];
            let older = &branches[start..start + length];
            newer.iter().zip(older).all(|(a, b)| same(a, b))
        });
        match iteration_length {
            Some(length) => drop(branches.drain(start..start + length)),
            None => start += 1,
        }
    }
}

/// The frames of a sample whose user stack was recorded by the CPU as a stack of calls (LBR). `None` for other samples.
///
/// The innermost user frame is the target of the newest call. The other user frames are call instructions, not return
/// addresses.
pub(super) fn lbr_chain<'data>(sample: &Sample<'data>, attr: &EventAttr) -> Option<impl Iterator<Item = ModeFrame>> {
    let branches = sample.branches.filter(|_| attr.branch_sample_type & abi::PERF_SAMPLE_BRANCH_CALL_STACK != 0)?;
    // As in perf, the LBR only replaces the user part of a call chain. Without that part, there is nothing to replace.
    sample.callchain.iter().find(|&word| word == abi::PERF_CONTEXT_USER)?;
    let newest = branches.iter().next()?.to;
    let user = std::iter::once(newest).chain(branches.iter().map(|branch| branch.from));
    let kernel = sample.frames().take_while(|(mode, _)| *mode != CpuMode::User);
    Some(kernel.chain(user.map(|addr| (CpuMode::User, FrameAddr::Ip(addr)))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::cursor::Endian;
    use crate::formats::perf_data::Words;

    fn history(branches: &[[u64; 2]], chain: &[u64]) -> Vec<u64> {
        let words: Vec<u64> = branches.iter().flat_map(|&[from, to]| [from, to, 0]).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let branches = Branches::new(Words::new(&bytes, Endian::Little));
        let addr = |&addr: &u64| (CpuMode::User, FrameAddr::Return(Addr(addr)));
        let mut frames: Vec<ModeFrame> = chain.iter().map(addr).collect();
        put_branch_history(branches, &mut frames);
        frames.iter().map(|(_, frame)| frame.raw().0).collect()
    }

    #[test]
    fn callers_that_the_branches_report_are_reported_once() {
        // main called f at 0x100 (returns to 0x105); f called g at 0x200 (returns to 0x205).
        assert_eq!(history(&[[0x200, 0x300]], &[0x308, 0x205, 0x105]), [0x300, 0x200, 0x105]);
        assert_eq!(history(&[[0x310, 0x302]], &[0x308, 0x205, 0x105]), [0x302, 0x310, 0x205, 0x105]);
        assert_eq!(history(&[], &[0x308, 0x205]), [0x308, 0x205]);
    }

    #[test]
    fn a_loop_is_reported_once() {
        let (a, b, c) = ([1, 2], [3, 4], [5, 6]);
        assert_eq!(history(&[a, a, a, b], &[]), [2, 1, 4, 3]);
        assert_eq!(history(&[a, b, a, b, a, b, c], &[]), [2, 1, 4, 3, 6, 5]);
        assert_eq!(history(&[a, b, c, a], &[]), [2, 1, 4, 3, 6, 5, 2, 1]);
    }
}
