//! Combines listings: merges the versions of a function, or reduces listings to costs by source line.

use super::annotated::{Calls, Code, Line, Listing, SourceFile, SourceLine, SourceLineCosts};
use super::costs::Costs;
use super::options::CodeGrouping;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Combines listings as the user asked for. Listings with the same function name must be adjacent.
pub(super) fn regroup(listings: Vec<Listing>, how: CodeGrouping) -> Vec<Listing> {
    let mut listings = if how.merge { merge_versions(listings) } else { listings };
    if how.by_line {
        for listing in &mut listings {
            if matches!(listing.code, Code::Listed { .. }) {
                listing.code = sum_by_line(&[&*listing]);
            }
        }
    }
    listings
}

/// Merges adjacent listings with the same function name.
fn merge_versions(listings: Vec<Listing>) -> Vec<Listing> {
    let mut all: Vec<Vec<Listing>> = Vec::new();
    for listing in listings {
        let is_first_version = listing.hottest().number <= 1;
        match all.last_mut() {
            Some(versions) if !is_first_version => versions.push(listing),
            _ => all.push(vec![listing]),
        }
    }
    all.into_iter().filter_map(merge).collect()
}

/// Merges the versions of a function into one listing: by instruction if all have the same machine code, otherwise by
/// source line. If no line is known, the listing says so instead of showing code. `None` if `codes` is empty.
fn merge(codes: Vec<Listing>) -> Option<Listing> {
    let mut versions = Vec::new();
    let mut inclusive = Vec::new();
    let mut costs = Costs::default();
    for code in &codes {
        versions.extend(code.versions.iter().cloned());
        inclusive.extend(code.inclusive.iter().cloned());
        costs.join(&code.costs);
    }
    if !are_same(&codes) {
        let mut code = sum_by_line(&codes.iter().collect::<Vec<_>>());
        if let Code::SourceLines { lines, .. } = &code
            && lines.iter().all(|line| line.source.is_none())
        {
            code = Code::Missing(NO_LINES_TO_MERGE_BY.into());
        }
        let first = codes.into_iter().next()?;
        return Some(Listing { versions, costs, inclusive, code, ..first });
    }
    let mut codes = codes.into_iter();
    let mut first = codes.next()?;
    for other in codes {
        join_lines(&mut first.code, &other.code);
    }
    Some(Listing { versions, costs, inclusive, ..first })
}

const NO_LINES_TO_MERGE_BY: &str =
    "its compiled versions differ and have no source lines to merge by; leave out --merge to list each one";

/// True if all versions have the same machine code.
fn are_same(codes: &[Listing]) -> bool {
    let [first, others @ ..] = codes else { return true };
    others.is_empty()
        || (machine_code(first).is_some() && others.iter().all(|code| machine_code(code) == machine_code(first)))
}

fn machine_code(listing: &Listing) -> Option<&[u8]> {
    match &listing.code {
        Code::Listed { bytes, .. } => Some(bytes),
        _ => None,
    }
}

/// Adds the costs of a version with the same machine code, instruction by instruction.
fn join_lines(code: &mut Code, other: &Code) {
    let (Code::Listed { lines, .. }, Code::Listed { lines: others, .. }) = (code, other) else { return };
    for (line, other) in lines.iter_mut().zip(others) {
        if let Some(costs) = &other.costs {
            line.costs.get_or_insert_default().join(costs);
        }
        Calls::join(&mut line.calls, &other.calls);
    }
}

/// Sums costs by source line over several listings. Listings without code count for an unknown line.
fn sum_by_line(codes: &[&Listing]) -> Code {
    let mut files: Vec<SourceFile> = Vec::new();
    let mut numbers: FxHashMap<&[u8], usize> = FxHashMap::default();
    let mut sums: BTreeMap<Option<SourceLine>, (Costs, Vec<Calls>)> = BTreeMap::new();
    for listing in codes {
        let Code::Listed { lines, files: own, .. } = &listing.code else {
            sums.entry(None).or_default().0.join(&listing.costs);
            continue;
        };
        for Line { source, costs, calls, .. } in
            lines.iter().filter(|line| line.costs.is_some() || !line.calls.is_empty())
        {
            let source = source.map(|source| {
                let file = &own[source.file];
                let number = *numbers.entry(&file.name).or_insert(files.len());
                if number == files.len() {
                    files.push(file.clone());
                }
                SourceLine { file: number, ..source }
            });
            let sums = sums.entry(source).or_default();
            costs.iter().for_each(|costs| sums.0.join(costs));
            sums.1.extend_from_slice(calls);
        }
    }
    let lines = sums.into_iter().map(|(source, (costs, all))| {
        let mut calls = Vec::new();
        Calls::join(&mut calls, &all);
        SourceLineCosts { source, costs, calls }
    });
    let lines = lines.collect();
    Code::SourceLines { files, lines }
}

#[cfg(test)]
mod tests {
    use super::super::annotated::Version;
    use super::super::costs::Cost;
    use super::*;
    use crate::analysis::category::Category;
    use crate::model::Pid;

    fn costs(count: u64) -> Costs {
        let mut costs = Costs::default();
        costs.add(0, Cost { weight: 10 * count as i64, count });
        costs
    }

    /// Creates code with two instructions: the first in source line `first` (`None`: unknown), the second in line 8.
    fn code(number: usize, bytes: [u8; 2], first: Option<u32>, counts: [u64; 2]) -> Listing {
        let line = |offset: u64, line: Option<u32>, count: u64| Line {
            offset,
            len: 1,
            text: "nop".into(),
            costs: (count > 0).then(|| costs(count)),
            target: None,
            source: line.map(|line| SourceLine { file: 0, line }),
            calls: Vec::new(),
        };
        let lines = vec![line(0, first, counts[0]), line(1, first.map(|_| 8), counts[1])];
        let files = vec![SourceFile::new(b"a.js", None)];
        let own = costs(counts[0] + counts[1]);
        let (category, pid, extent, loaded) = (Category::Jit(None), Pid(1), Some((0, 2)), None);
        Listing {
            name: b"f".to_vec(),
            module: None,
            versions: vec![Version {
                number,
                category,
                pid,
                extent,
                loaded,
                costs: own.clone(),
                expanded: Vec::new(),
                bpf: None,
            }],
            all_versions: 2,
            costs: own,
            inclusive: Vec::new(),
            code: Code::Listed { addr: 0, bytes: bytes.to_vec(), lines, files },
        }
    }

    fn samples_by_line(code: &Code) -> Vec<(Option<u32>, u64)> {
        let Code::SourceLines { lines, .. } = code else { panic!("{code:?}") };
        lines.iter().map(|line| (line.source.map(|source| source.line), line.costs.samples())).collect()
    }

    const MERGE: CodeGrouping = CodeGrouping { merge: true, by_line: false };

    #[test]
    fn the_same_code_elsewhere_is_one_code() {
        let listings = regroup(vec![code(1, [1, 2], Some(7), [3, 0]), code(2, [1, 2], Some(7), [1, 1])], MERGE);
        let [listing] = &listings[..] else { panic!("{listings:?}") };
        assert_eq!((listing.versions.len(), listing.costs.samples()), (2, 5));
        let Code::Listed { lines, .. } = &listing.code else { panic!("{listing:?}") };
        let counts: Vec<_> = lines.iter().map(|line| line.costs.as_ref().map(Costs::samples)).collect();
        assert_eq!(counts, [Some(4), Some(1)]);
    }

    #[test]
    fn versions_that_differ_are_summed_by_source_line() {
        let listings = regroup(vec![code(1, [1, 2], Some(7), [3, 1]), code(2, [1, 3], Some(7), [1, 1])], MERGE);
        assert_eq!(listings.len(), 1);
        assert_eq!(samples_by_line(&listings[0].code), [(Some(7), 4), (Some(8), 2)]);
        let without = regroup(vec![code(1, [1, 2], None, [3, 1]), code(2, [1, 3], None, [1, 1])], MERGE);
        assert!(
            matches!(&without[0].code, Code::Missing(why) if why.contains("compiled versions differ")),
            "{without:?}"
        );
        assert_eq!(without[0].costs.samples(), 6);
    }

    #[test]
    fn lines_can_be_reported_alone_and_other_names_stay_apart() {
        let listings = vec![code(1, [1, 2], Some(7), [3, 1]), code(1, [1, 2], None, [2, 0])];
        let told = regroup(listings, CodeGrouping { merge: true, by_line: true });
        let all: Vec<_> = told.iter().map(|listing| samples_by_line(&listing.code)).collect();
        assert_eq!(all, [vec![(Some(7), 3), (Some(8), 1)], vec![(None, 2)]]);
    }
}
