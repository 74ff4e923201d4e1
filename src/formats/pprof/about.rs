//! The facts about a profile itself: when, how long, how often, and which files had code.

use super::tables::{Mapping, Tables};
use crate::model::about::{About, MappedRange, Module, TimeExtent};
use crate::model::backing::Backing;
use crate::model::process::BuildId;
use crate::model::{Addr, Nanos, Pid};

/// Collects it. Times of samples, if they are reported at all, are on a clock of their own; without them that clock
/// begins with the profile.
pub(super) fn about(tables: &Tables<'_>, sampled: Option<TimeExtent>) -> About {
    let whole = TimeExtent { first: Nanos(0), last: Nanos(tables.duration) };
    let first = sampled.map_or(0, |sampled| sampled.first.0);
    let mut about = About {
        epoch: (tables.time > 0).then(|| i128::from(tables.time) - i128::from(first)),
        sampled: sampled.or((tables.duration > 0 || tables.time > 0).then_some(whole)),
        ..About::default()
    };
    for mapping in &tables.mapping_order {
        let name = tables.string(mapping.file);
        if !name.is_empty() {
            add(about.modules.entry(name.to_vec()).or_default(), mapping, tables);
        }
    }
    about
}

fn add(module: &mut Module, mapping: &Mapping, tables: &Tables<'_>) {
    let Mapping { start, limit, offset, .. } = *mapping;
    module.is_kernel = Backing::of(tables.string(mapping.file)).is_kernel_object();
    module.build_id.add(BuildId::from_digits(tables.string(mapping.build_id)));
    if let Some(len) = limit.checked_sub(start).filter(|len| *len > 0) {
        // A profile is of one process, and does not state about which.
        let pid = Pid(if module.is_kernel { -1 } else { 0 });
        module.mapped.push(MappedRange { pid, time: Nanos(0), addr: Addr(start), len, file_offset: offset });
    }
}
