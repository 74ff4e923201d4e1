//! Compares demangled names with those of c++filt and perf.

use crate::symbolize::symbols::demangle::demangle;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Mangled names from libstdc++, V8 and Qt, and from a program written to produce difficult names.
const CPP: &str = "\
_ZSt4swapI3BigENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EESt21is_move_constructibleIS5_ESt18is_move_assignableIS5_EEE5valueEvE4typeERS5_SF_
_ZN2v84base17PrintCheckOperandIPKaEENSt9enable_ifIXaaaantsrSt11is_functionINSt14remove_pointerIT_E4typeEE5valuentsrSt7is_enumIS7_E5valuesrNS0_19has_output_operatorIS7_NS0_18CheckMessageStreamEvEE5valueENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEE4typeES7_
_ZNSt23mersenne_twister_engineIjLm32ELm624ELm397ELm31ELj2567483615ELm11ELj4294967295ELm7ELj2636928640ELm15ELj4022730752ELm18ELj1812433253EE4seedISt8seed_seqEENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt7is_sameINSt9remove_cvINSt16remove_referenceIT_E4typeEE4typeES0_EESt11is_unsignedINS9_11result_typeEES5_ISt14is_convertibleIS9_jEEEE5valueEvE4typeERS9_
_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendISt17basic_string_viewIcS2_EEENSt9enable_ifIXsrSt6__and_IJSt14is_convertibleIRKT_S7_ESt6__not_ISA_IPSC_PKS4_EESF_ISA_ISD_PKcEEEE5valueERS4_E4typeESD_.isra.0
_ZSt10from_charsItENSt9enable_ifIXsrSt5__or_IJS1_IJSt7is_sameINSt9remove_cvIT_E4typeEaES2_IS6_sES2_IS6_iES2_IS6_lES2_IS6_xES2_IS6_nEEES1_IJS2_IS6_hES2_IS6_tES2_IS6_jES2_IS6_mES2_IS6_yES2_IS6_oEEES2_IcS6_EEE5valueESt17from_chars_resultE4typeEPKcSR_RS4_i
_ZSt14__copy_move_a1ILb1EPjjEN9__gnu_cxx11__enable_ifIXsrSt23__is_random_access_iterIT0_NSt15iterator_traitsIS4_E17iterator_categoryEE7__valueESt15_Deque_iteratorIT1_RSA_PSA_EE6__typeES4_S4_SD_
_ZSteqIcEN9__gnu_cxx11__enable_ifIXsrSt9__is_charIT_E7__valueEbE6__typeERKNSt7__cxx1112basic_stringIS3_St11char_traitsIS3_ESaIS3_EEESE_.isra.0
_ZZNSt8__detail13__to_chars_16IjEENSt9enable_ifIXsrSt5__or_IJS2_IJSt7is_sameINSt9remove_cvIT_E4typeEaES3_IS7_sES3_IS7_iES3_IS7_lES3_IS7_xES3_IS7_nEEES2_IJS3_IS7_hES3_IS7_tES3_IS7_jES3_IS7_mES3_IS7_yES3_IS7_oEEES3_IcS7_EEE5valueESt15to_chars_resultE4typeEPcSR_S5_E8__digits
_ZZ3lamIiENSt9enable_ifIXsrSt11is_integralIT_E5valueEiE4typeES2_ENKUliE_clEi.isra.0
_Z3runIZ3lamIiEDaT_P2enIXsr6is_intIS1_E5valueELb0EEEUlS2_ILi1ELb0EEE_EvS1_
_Z7nested2IlE3booIXsrN2my6is_intIT_E2inIS3_EE5valueEES3_
_Z6memberI2trE3booIXaasrT_5valuesrSt7is_sameIS2_iE5valueEES2_
_Z5plainIiE3booIXsr6is_intIT_E5valueEES2_
_ZThn8_N4node9inspector12_GLOBAL__N_111ChannelImpl24sendProtocolNotificationESt10unique_ptrINS0_8protocol12SerializableESt14default_deleteIS5_EE.cold
_ZNSt6vectorIiSaIiEE9push_backEOi
_ZN4llvm6detail9PassModelINS_8FunctionENS_12EarlyCSEPassENS_17PreservedAnalysesENS_15AnalysisManagerIS2_JEEEJEE3runERS2_RS6_
_ZN4core3fmt5write17h0123456789abcdefE
_RNvNtNtCsSR1oCmx5b7_16rustc_query_impl10query_impl12variances_of18execute_query_incr
";

fn run(program: &str, arguments: &[&str], dir: &Path, input: &str) -> String {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error} (tests/run.sh installs it)"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The mangled C++ names that `nm` with these arguments lists.
fn mangled_names(arguments: &[&str], dir: &Path) -> BTreeSet<String> {
    let listed = run("nm", arguments, dir, "");
    let names = listed.lines().filter_map(|line| line.split_whitespace().last()?.split('@').next());
    names.filter(|name| name.starts_with("_Z")).map(str::to_owned).collect()
}

/// Compares our form of each name with c++filt's, if c++filt can demangle it. Returns the number of names compared.
fn compare_with_cxxfilt(names: &BTreeSet<String>, dir: &Path) -> usize {
    let list: Vec<&str> = names.iter().map(String::as_str).collect();
    std::fs::write(dir.join("list"), list.join("\n")).unwrap();
    let theirs = run("sh", &["-c", "c++filt --no-params --no-verbose < list"], dir, "");
    assert_eq!(theirs.lines().count(), list.len());
    let read = list.iter().zip(theirs.lines()).filter(|(mangled, theirs)| *mangled != theirs);
    read.inspect(|(mangled, theirs)| {
        assert_eq!(demangle(mangled.as_bytes()).as_deref(), Some(*theirs), "{mangled}");
    })
    .count()
}

/// The names are from the C++ standard library, and from a program written to produce difficult names.
#[test]
fn all_names_of_a_program_and_a_library_are_those_of_cxxfilt() {
    let dir = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/names.cpp");
    let mut of_program = BTreeSet::new();
    for standard in ["-std=c++14", "-std=c++17", "-std=c++20"] {
        run("g++", &[standard, "-O0", "-w", "-o", "names", source], dir.path(), "");
        of_program.extend(mangled_names(&["names"], dir.path()));
    }
    assert!(compare_with_cxxfilt(&of_program, dir.path()) > 90);
    let library = run("g++", &["-print-file-name=libstdc++.so.6"], dir.path(), "");
    let of_library = mangled_names(&["-D", library.trim()], dir.path());
    assert!(compare_with_cxxfilt(&of_library, dir.path()) > 4000);
}

#[test]
fn names_of_cpp_and_rust_are_those_of_cxxfilt() {
    // c++filt is told to leave out parameters and not to expand `std::string`.
    let theirs = run("c++filt", &["--no-params", "--no-verbose"], Path::new("."), CPP);
    assert_eq!(theirs.lines().count(), CPP.lines().count());
    for (mangled, theirs) in CPP.lines().zip(theirs.lines()) {
        assert_eq!(demangle(mangled.as_bytes()).as_deref(), Some(theirs), "{mangled}");
    }
}
