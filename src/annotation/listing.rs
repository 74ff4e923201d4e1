//! A function's bytes → its instructions, with what was sampled at each.

use super::annotated::{Code, Line, LineTarget, Listing, TargetPlace, Version};
use super::costs::Costs;
use super::functions::Function;
use crate::model::Nanos;
use crate::resolve::disasm::{Instruction, Target};
use std::collections::BTreeMap;

/// The listing of one version of a function: `(number, all)` of its name, its code, and when that was written.
pub(super) fn of(
    function: &Function,
    (number, all_versions): (usize, usize),
    code: Code,
    loaded: Option<Nanos>,
) -> Listing {
    let Function { category, ref costs, last, .. } = *function;
    let extent = match &code {
        Code::Listed { addr, bytes, .. } => Some((*addr, bytes.len() as u64)),
        _ => None,
    };
    let (pid, costs) = (last.pid, costs.clone());
    let version = Version { number, category, pid, extent, loaded, costs, expanded: Vec::new(), bpf: None };
    Listing {
        name: function.name.clone(),
        module: function.module.clone(),
        costs: version.costs.clone(),
        versions: vec![version],
        all_versions,
        inclusive: Vec::new(),
        code,
    }
}

/// The lines of code with this length bytes that lies at `addr`. Samples that stand inside an instruction are that
/// one's.
pub(super) fn lines(instructions: Vec<Instruction>, len: usize, addr: u64, at: &BTreeMap<u64, Costs>) -> Vec<Line> {
    let place = |target: Target| {
        let inside = target.addr.wrapping_sub(addr);
        let place = if inside < len as u64 { TargetPlace::Inside(inside) } else { TargetPlace::Unknown };
        LineTarget { addr: target.addr, kind: target.kind, place }
    };
    let line = |instruction: Instruction| {
        let Instruction { offset, len, text, target } = instruction;
        let costs = at.range(offset..offset + len).map(|(_, costs)| costs).fold(None, |sum: Option<Costs>, costs| {
            let mut sum = sum.unwrap_or_default();
            sum.join(costs);
            Some(sum)
        });
        Line { offset, len, text, costs, target: target.map(place), source: None, calls: Vec::new() }
    };
    instructions.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::costs::Cost;
    use crate::resolve::disasm::{Disassembler, Syntax};

    #[test]
    fn samples_are_at_the_instruction_that_they_are_in() {
        // push %rbp; mov %rsp,%rbp; jmp back to the start; call far away
        let code = [0x55, 0x48, 0x89, 0xe5, 0xeb, 0xfa, 0xe8, 0, 0, 1, 0];
        let mut costs = Costs::default();
        costs.add(0, Cost { weight: 7, count: 1 });
        let at = BTreeMap::from([(0, costs.clone()), (1, costs.clone()), (3, costs.clone())]);
        let instructions = Disassembler::new(62, Syntax::Att).decode(&code, 0x4000);
        let lines = lines(instructions, code.len(), 0x4000, &at);
        let counts: Vec<_> = lines.iter().map(|line| line.costs.as_ref().map_or(0, Costs::samples)).collect();
        assert_eq!(counts, [1, 2, 0, 0]);
        assert_eq!(lines[2].target.as_ref().unwrap().place, TargetPlace::Inside(0));
        let call = lines[3].target.as_ref().unwrap();
        assert_eq!((call.addr, &call.place), (0x1400b, &TargetPlace::Unknown));
    }
}
