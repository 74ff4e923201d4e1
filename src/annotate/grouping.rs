//! Combines listings: merges the versions of a function, or reduces listings to costs by source line.

use super::costs::Costs;
use super::listing::{Calls, Code, Listing, Row, SourceFile, SourceLine};
use super::options::CodeGrouping;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Combines listings as the user asked for: may merge the versions of each function into one listing, and sum costs by
/// source line. For merging, the listings of each function must be contiguous, with the hottest version first.
pub(super) fn regroup(listings: Vec<Listing>, grouping: CodeGrouping) -> Vec<Listing> {
    let mut listings = if grouping.merge { merge_versions(listings) } else { listings };
    if grouping.by_line {
        for listing in &mut listings {
            if matches!(listing.code, Code::Instructions { .. }) {
                let LineSums { rows, files } = sum_by_line(std::slice::from_ref(listing));
                (listing.code, listing.rows, listing.files) = (Code::SourceLines, rows, files);
            }
        }
    }
    listings
}

/// Merges the listings of each function's versions. Each listing has a single version here. The versions of a function
/// are contiguous and numbered from 1, so a version with number 1 begins the next function.
fn merge_versions(listings: Vec<Listing>) -> Vec<Listing> {
    let mut functions: Vec<Vec<Listing>> = Vec::new();
    for listing in listings {
        let is_first_version = listing.hottest().number <= 1;
        match functions.last_mut() {
            Some(versions) if !is_first_version => versions.push(listing),
            _ => functions.push(vec![listing]),
        }
    }
    functions.into_iter().filter_map(merge).collect()
}

/// Merges the versions of a function into one listing: by instruction if all have the same machine code, otherwise by
/// source line. If no line is known, the listing says so instead of showing code. `None` if there are no versions.
fn merge(versions: Vec<Listing>) -> Option<Listing> {
    // Only versions with the same machine code have the same rows, so that rows can be joined one by one.
    let line_sums = if have_same_code(&versions) { None } else { Some(sum_by_line(&versions)) };
    let mut versions = versions.into_iter();
    let mut merged = versions.next()?;
    for other in versions {
        merged.costs.join(&other.costs);
        if line_sums.is_none() {
            join_rows(&mut merged.rows, &other.rows);
        }
        merged.versions.extend(other.versions);
        merged.inclusive.extend(other.inclusive);
    }
    if let Some(LineSums { rows, files }) = line_sums {
        let is_any_line_known = rows.iter().any(|row| row.source.is_some());
        if is_any_line_known {
            (merged.code, merged.rows, merged.files) = (Code::SourceLines, rows, files);
        } else {
            let code = Code::Missing(NO_LINES_TO_MERGE_BY.into());
            (merged.code, merged.rows, merged.files) = (code, Vec::new(), Vec::new());
        }
    }
    Some(merged)
}

const NO_LINES_TO_MERGE_BY: &str =
    "the compiled versions differ, and cannot be merged without source lines; leave out --merge to list each version";

/// True if all versions have the same machine code. Versions whose code is missing count as different.
fn have_same_code(versions: &[Listing]) -> bool {
    let [first, others @ ..] = versions else { return true };
    others.is_empty() || (!first.bytes().is_empty() && others.iter().all(|other| other.bytes() == first.bytes()))
}

/// Adds the costs of a version with the same machine code, instruction by instruction.
fn join_rows(rows: &mut [Row], others: &[Row]) {
    for (row, other) in rows.iter_mut().zip(others) {
        if let Some(costs) = &other.costs {
            row.costs.get_or_insert_default().join(costs);
        }
        Calls::join(&mut row.calls, &other.calls);
    }
}

/// Rows for source lines, and the files that they refer to.
struct LineSums {
    rows: Vec<Row>,
    files: Vec<SourceFile>,
}

/// Sums costs by source line over several listings. If a listing has no instructions, its costs count for the row of
/// unknown lines.
fn sum_by_line(listings: &[Listing]) -> LineSums {
    let mut files: Vec<SourceFile> = Vec::new();
    // Each listing numbers its files on its own, so files are found by name and numbered anew.
    let mut file_numbers: FxHashMap<&[u8], usize> = FxHashMap::default();
    // The costs and calls of each line, and under `None` those whose line isn't known.
    let mut sums: BTreeMap<Option<SourceLine>, (Costs, Vec<Calls>)> = BTreeMap::new();
    for listing in listings {
        if !matches!(listing.code, Code::Instructions { .. }) {
            sums.entry(None).or_default().0.join(&listing.costs);
            continue;
        }
        for row in listing.rows.iter().filter(|row| row.has_data()) {
            let source = row.source.map(|source| {
                let file = &listing.files[source.file];
                let number = *file_numbers.entry(&file.name).or_insert(files.len());
                if number == files.len() {
                    files.push(file.clone());
                }
                SourceLine { file: number, ..source }
            });
            let (costs, calls) = sums.entry(source).or_default();
            if let Some(row_costs) = &row.costs {
                costs.join(row_costs);
            }
            calls.extend_from_slice(&row.calls);
        }
    }
    let mut rows = Vec::with_capacity(sums.len());
    for (source, (costs, all_calls)) in sums {
        let mut calls = Vec::new();
        Calls::join(&mut calls, &all_calls);
        rows.push(Row { instruction: None, source, costs: Some(costs), calls });
    }
    LineSums { rows, files }
}

#[cfg(test)]
mod tests {
    use super::super::costs::Cost;
    use super::super::listing::{Instruction, Version};
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
        let row = |offset: u64, line: Option<u32>, count: u64| Row {
            instruction: Some(Instruction { offset, len: 1, text: "nop".into(), target: None }),
            costs: (count > 0).then(|| costs(count)),
            source: line.map(|line| SourceLine { file: 0, line }),
            calls: Vec::new(),
        };
        let rows = vec![row(0, first, counts[0]), row(1, first.map(|_| 8), counts[1])];
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
            code: Code::Instructions { addr: 0, bytes: bytes.to_vec() },
            rows,
            files,
        }
    }

    fn samples_by_line(listing: &Listing) -> Vec<(Option<u32>, u64)> {
        assert!(matches!(listing.code, Code::SourceLines), "{listing:?}");
        let samples = |row: &Row| row.costs.as_ref().map_or(0, Costs::samples);
        listing.rows.iter().map(|row| (row.source.map(|source| source.line), samples(row))).collect()
    }

    const MERGE: CodeGrouping = CodeGrouping { merge: true, by_line: false };

    #[test]
    fn the_same_code_elsewhere_is_one_code() {
        let listings = regroup(vec![code(1, [1, 2], Some(7), [3, 0]), code(2, [1, 2], Some(7), [1, 1])], MERGE);
        let [listing] = &listings[..] else { panic!("{listings:?}") };
        assert_eq!((listing.versions.len(), listing.costs.samples()), (2, 5));
        assert!(matches!(listing.code, Code::Instructions { .. }), "{listing:?}");
        let counts: Vec<_> = listing.rows.iter().map(|line| line.costs.as_ref().map(Costs::samples)).collect();
        assert_eq!(counts, [Some(4), Some(1)]);
    }

    #[test]
    fn versions_that_differ_are_summed_by_source_line() {
        let listings = regroup(vec![code(1, [1, 2], Some(7), [3, 1]), code(2, [1, 3], Some(7), [1, 1])], MERGE);
        assert_eq!(listings.len(), 1);
        assert_eq!(samples_by_line(&listings[0]), [(Some(7), 4), (Some(8), 2)]);
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
        let by_line = regroup(listings, CodeGrouping { merge: true, by_line: true });
        let all: Vec<_> = by_line.iter().map(samples_by_line).collect();
        assert_eq!(all, [vec![(Some(7), 3), (Some(8), 1)], vec![(None, 2)]]);
    }
}
