//! Roots of other machines made of unpacked packages, and directories of files by build ID.

use super::{Elsewhere, jitgraft, printed, said};
use crate::support::tool::small_program;
use std::fs;
use std::os::unix::fs::symlink;

/// The build ID of the program in fixtures/recording-machines.
const ID: (&str, &str) = ("ab", "d7bee3a1e2f7b1a7dbc1b0b5270f0a4ea5d5e3");

fn names(elsewhere: &Elsewhere, options: &str) -> String {
    printed(elsewhere.path(), &format!("collapse {options} perf.data"))
}

#[test]
fn a_file_may_be_in_usr_or_not_and_links_lead_to_places_in_the_root() {
    let elsewhere = Elsewhere::new("aarch64", "deep-nofp", "copies");
    let whole = names(&elsewhere, "--symfs root");
    assert!(whole.contains(";n_p"), "{whole}");
    // An absolute link, as packages have them: it leads to a place below the root.
    fs::rename(elsewhere.at("root/programs"), elsewhere.at("root/moved")).unwrap();
    symlink("/moved", elsewhere.at("root/programs")).unwrap();
    assert_eq!(names(&elsewhere, "--symfs root"), whole);
    // One that leads nowhere in there leads to where it does for any program.
    fs::remove_file(elsewhere.at("root/programs")).unwrap();
    fs::rename(elsewhere.at("root/moved"), elsewhere.at("outside")).unwrap();
    symlink(elsewhere.at("outside"), elsewhere.at("root/programs")).unwrap();
    assert_eq!(names(&elsewhere, "--symfs root"), whole);
}

#[test]
fn perfs_cache_and_what_perf_archive_packs_of_it_are_directories_of_files_by_build_id() {
    let elsewhere = Elsewhere::new("aarch64", "deep-nofp", "copies");
    let whole = names(&elsewhere, "--symfs root");
    let (first, rest) = ID;
    let kept = elsewhere.at("debug").join("programs/deep-nofp").join(format!("{first}{rest}"));
    fs::create_dir_all(&kept).unwrap();
    fs::create_dir_all(elsewhere.at("debug/.build-id").join(first)).unwrap();
    fs::rename(elsewhere.at("root/programs/deep-nofp"), kept.join("elf")).unwrap();
    let link = elsewhere.at("debug/.build-id").join(first).join(rest);
    symlink(format!("../../programs/deep-nofp/{first}{rest}"), &link).unwrap();
    assert_eq!(names(&elsewhere, "--debug-dir debug"), whole);
    // As packages have them: a link to the file itself.
    fs::remove_file(&link).unwrap();
    symlink(kept.join("elf"), &link).unwrap();
    assert_eq!(names(&elsewhere, "--debug-dir debug"), whole);
    assert_ne!(names(&elsewhere, ""), whole);
}

#[test]
fn a_file_of_another_machine_is_not_used_and_reported() {
    let elsewhere = Elsewhere::new("aarch64", "deep-nofp", "copies");
    fs::copy(small_program(), elsewhere.at("root/programs/deep-nofp")).unwrap();
    let output = jitgraft(elsewhere.path(), "collapse --symfs root perf.data");
    let said = said(&output);
    assert!(said.contains("it is not the version that ran"), "{said}");
}

#[test]
fn doctor_states_where_it_was_recorded_and_how_to_bring_it_here() {
    let elsewhere = Elsewhere::new("s390x", "deep-nofp", "copies");
    let text = printed(elsewhere.path(), "doctor perf.data");
    assert!(text.contains("recorded on s390x (Linux 6.1") && text.contains(", read on "), "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("jitgraft pack perf.data"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&printed(elsewhere.path(), "doctor --format json perf.data")).unwrap();
    assert_eq!(json[0]["recorded_on"]["machine"], "s390x");
    assert_eq!(json[0]["recorded_on"]["is_this_machine"], false);
}
