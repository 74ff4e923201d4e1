//! Combines the facts about profiles that are being merged (command, host, …). A fact is only kept if all profiles
//! agree.

use crate::model::Nanos;
use crate::model::about::{About, Agreed, TimeExtent};
use rustc_hash::{FxHashMap, FxHashSet};

/// A range of bytes in a module's file that was mapped, without the address, which differs between processes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MappedFilePiece {
    file_offset: u64,
    len: u64,
}

/// Collects facts about profiles, one profile after the other.
#[derive(Debug, Default)]
pub(super) struct MergedAbout {
    command: Agreed<Vec<Vec<u8>>>,
    host: Agreed<Vec<u8>>,
    arch: Agreed<Vec<u8>>,
    os: Agreed<Vec<u8>>,
    os_release: Agreed<Vec<u8>>,
    /// For each module, the mapped pieces of its file that the profiles so far had.
    pieces: FxHashMap<Vec<u8>, FxHashSet<MappedFilePiece>>,
    /// The wall-clock time when the earliest profile started, in nanoseconds since 1970.
    began: Option<i128>,
    /// The sum of the durations of all profiles, in nanoseconds.
    sampled: Option<u64>,
    /// The number of samples that the profiles lost.
    lost: u64,
    samples_without_labels: u64,
}

impl MergedAbout {
    /// Combines the facts about a profile with those of earlier profiles. The facts are taken out of the profile, so
    /// that merging it later doesn't combine them a second time. Only modules and values stay. A mapped part of a
    /// module's file is dropped if an earlier profile had it: every process maps the same parts, only at other
    /// addresses.
    pub(super) fn take(&mut self, about: &mut About) {
        let facts = std::mem::take(about);
        let About { command, host, arch, os, os_release, epoch, sampled, lost, modules, values, .. } = facts;
        self.samples_without_labels += facts.samples_without_labels;
        self.command.add(Some(command).filter(|command| !command.is_empty()));
        self.host.add(host);
        self.arch.add(arch);
        self.os.add(os);
        self.os_release.add(os_release);
        // `epoch` is when the profile's own clock was 0. Its first sample is somewhat later.
        let began = epoch.map(|epoch| epoch + i128::from(sampled.map_or(0, |sampled| sampled.first.0)));
        self.began = match (self.began, began) {
            (Some(earliest), Some(began)) => Some(earliest.min(began)),
            (earliest, began) => earliest.or(began),
        };
        if let Some(sampled) = sampled {
            self.sampled = Some(self.sampled.unwrap_or(0).saturating_add(sampled.duration()));
        }
        self.lost = self.lost.saturating_add(lost);
        // Modules and values stay in the profile: they are combined when the profiles are merged.
        (about.modules, about.values) = (modules, values);
        for (name, module) in &mut about.modules {
            let earlier_pieces = self.pieces.entry(name.clone()).or_default();
            // `insert` returns false, which drops the range, if an earlier profile had the same piece.
            module.mapped.retain(|range| {
                earlier_pieces.insert(MappedFilePiece { file_offset: range.file_offset, len: range.len })
            });
        }
    }

    /// Stores the combined facts in the merged profile.
    pub(super) fn finish(self, about: &mut About) {
        let (command, sampled) = (self.command.into_option().unwrap_or_default(), self.sampled);
        *about = About {
            command,
            host: self.host.into_option(),
            arch: self.arch.into_option(),
            os: self.os.into_option(),
            os_release: self.os_release.into_option(),
            epoch: self.began,
            // A sum of profiles has no times. Let its clock start when the first profile started, and run for the total
            // duration.
            sampled: sampled.map(|duration| TimeExtent { first: Nanos(0), last: Nanos(duration) }),
            lost: self.lost,
            samples_without_labels: self.samples_without_labels,
            modules: std::mem::take(&mut about.modules),
            values: about.values.take(),
            ..About::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::about::{MappedRange, Module};
    use crate::model::process::BuildId;
    use crate::model::{Addr, Pid};

    fn about(host: &str, build: u8, mapped_at: u64) -> About {
        let range = MappedRange { pid: Pid(1), time: Nanos(0), addr: Addr(mapped_at), len: 16, file_offset: 0 };
        let module = Module {
            build_id: BuildId::new(&[build; 20]).map_or(Agreed::Unstated, Agreed::Same),
            htl_hash: Agreed::Same([build; 16]),
            mapped: vec![range],
            ..Module::default()
        };
        About {
            host: Some(host.into()),
            arch: Some(b"x86_64".to_vec()),
            epoch: Some(1000 - i128::from(mapped_at)),
            sampled: Some(TimeExtent { first: Nanos(5), last: Nanos(9) }),
            modules: [(b"/bin/a".to_vec(), module)].into(),
            ..About::default()
        }
    }

    #[test]
    fn only_what_is_true_of_all_is_reported() {
        let (mut merged, mut sum) = (MergedAbout::default(), About::default());
        for mut one in [about("a", 1, 0x100), about("b", 2, 0x200), about("b", 1, 0x300)] {
            merged.take(&mut one);
            sum.merge(&one);
        }
        merged.finish(&mut sum);
        assert_eq!((sum.host, sum.arch), (None, Some(b"x86_64".to_vec())));
        assert_eq!((sum.epoch, sum.sampled.map(TimeExtent::duration)), (Some(1005 - 0x300), Some(12)));
        let module = &sum.modules[&b"/bin/a"[..]];
        assert_eq!((module.build_id, module.htl_hash), (Agreed::Several, Agreed::Several));
        assert_eq!((module.mapped.len(), module.mapped[0].addr), (1, Addr(0x100)));
    }
}
