//! Demangles C++ names of the Itanium ABI. The result is spelled as by c++filt and gdb.
//!
//! [`parse`] turns a name into a graph. Parts to which the name refers back are shared, so a name of one kilobyte can
//! stand for a text of any length. [`mod@print`] walks the graph and gives up once the text is longer than any real
//! name. Both limit the depth of nesting, because names are untrusted and are demangled on threads with small stacks.
//!
//! Template parameters are replaced, and packs expanded, only when printing. The reason is that a back reference stands
//! for mangled letters, which may refer to different templates in different places.
//!
//! Spec: <https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling>

mod graph;
mod operators;
mod parse;
mod print;

/// The demangled form of a C++ name that begins with `_Z`, without its parameters. `None` if it can't be demangled.
pub(super) fn demangle(mangled: &str) -> Option<String> {
    let (graph, root) = parse::parse(mangled)?;
    print::print(&graph, root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_types_that_depend_on_arguments_are_read_and_spelled_as_such() {
        let cases = [
            ("_Z4boolIiE2enIXsrSt6is_intIT_E5valueEES1_", "bool<int>"),
            (
                "_Z3runIZ3lamIiEDaT_P2enIXsr6is_intIS1_E5valueELb0EEEUlS2_ILi1ELb0EEE_EvS1_",
                "run<lam<int>(int, en<is_int<int>::value, false>*)::{lambda(en<1, false>)#1}>",
            ),
            (
                "_ZZ1fIiEvN1HIXsrSt1AIT_E5valueENS0_1BIXsrN1n1CIS2_EE3oneEEEEEENKUlvE_clEv",
                "f<int>(H<std::A<int>::value, H::B<n::C<int>::one> >)::{lambda()#1}::operator()",
            ),
        ];
        for (mangled, name) in cases {
            assert_eq!(demangle(mangled).as_deref(), Some(name), "{mangled}");
        }
    }

    /// c++filt prints the same names for these.
    #[test]
    fn types_references_and_packs() {
        let cases = [
            ("_Z7enqueueI7AnyCallIFvvOEEEvv", "enqueue<AnyCall<void () &&> >"),
            ("_Z7enqueueIKFicEEvv", "enqueue<int (char) const>"),
            ("_ZZ4manyIJicEEvDpOT_ENKUlvE_clEv", "many<int, char>(int&&, char&&)::{lambda()#1}::operator()"),
            ("_ZZ4manyIJRicEEvDpOT_ENKUlvE_clEv", "many<int&, char>(int&, char&&)::{lambda()#1}::operator()"),
            ("_Z1fIM1AFviEEvv", "f<void (A::*)(int)>"),
            ("_Z1fIRA4_KcEvv", "f<char const (&) [4]>"),
            ("_Z1fIPFPFvvEiEEvv", "f<void (*(*)(int))()>"),
            ("_Z1fILPFvvE0EEvv", "f<(void (*)())0>"),
            ("_ZN1AIiEcvT_IcEEv", "A<int>::operator char<char>"),
            ("_ZStlsIcEvv", "std::operator<< <char>"),
            ("_ZNSsC1Ev", "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string"),
            ("_ZTV1A", "vtable for A"),
            ("_Z1fIXadL_ZNK1A1gEvEEEvv", "f<&(A::g() const)>"),
            ("_Z1fIXadL_ZN1A1gEvEEEvv", "f<&A::g>"),
            ("_Z1fIXadL_ZNR1A1gEvEEEvv", "f<&(A::g() &)>"),
            ("_Z1fIXadL_ZNO1A1gEvEEEvv", "f<&(A::g() &&)>"),
            ("_Z1fIXadL_ZNKO1A1gEiEEEvv", "f<&(A::g(int) const &&)>"),
            ("_ZGR1x_", "reference temporary #0 for x"),
            ("_ZGRN1n1xE0_", "reference temporary #1 for n::x"),
        ];
        for (mangled, name) in cases {
            assert_eq!(demangle(mangled).as_deref(), Some(name), "{mangled}");
        }
    }

    /// `S1_` refers back to the letters `T_`. In one case they stand for the inner function's template parameter, in
    /// the other for the outer function's.
    #[test]
    fn parameters_of_templates_are_those_of_the_function_they_are_in() {
        let name = demangle("_ZZ5outerIZ5innerIcEvPT_EUlvE_EvRS1_ENKUlvE_clEv");
        let outer = "outer<inner<char>(char*)::{lambda()#1}>(inner<char>(char*)::{lambda()#1}&)";
        assert_eq!(name.unwrap(), format!("{outer}::{{lambda()#1}}::operator()"));
    }

    #[test]
    fn the_front_of_an_unreadable_input_is_named() {
        assert_eq!(demangle("_ZSt4swapIiENSt9enable_ifIXsr!E4typeERS5_").as_deref(), Some("std::swap<int>"));
        assert_eq!(demangle("_ZN1A1fEsr!").as_deref(), Some("A::f"));
        for unreadable in ["_ZN1A1fE!", "_Zsr!", "_ZSt4swapIXsr!E", "_Zsrsrsr", "_Z", "_ZN", "_ZNE", "_ZS_"] {
            assert_eq!(demangle(unreadable), None, "{unreadable}");
        }
    }

    #[test]
    fn thunks_of_which_a_part_was_split_off_are_thunks() {
        let name = demangle("_ZThn8_N1A1fEi.cold");
        assert_eq!(name.as_deref(), Some("non-virtual thunk to A::f(int)"));
    }

    /// A mangled name whose templates are nested `depth` levels deep, and its demangled form. V8's chains of reducers
    /// reach a depth of 40.
    fn nested(depth: usize) -> (String, String) {
        let mangled = format!("_Z1fI{}i{}vv", "1AI".repeat(depth), "E".repeat(depth + 1));
        (mangled, format!("f<{}int>{} >", "A<".repeat(depth), " >".repeat(depth - 1)))
    }

    #[test]
    fn deep_names_are_read_and_deeper_ones_take_no_stack() {
        let read = || {
            let (mangled, name) = nested(100);
            assert_eq!(demangle(&mangled), Some(name));
            for hostile in [
                nested(20_000).0,
                format!("_Z1f{}i", "P".repeat(60_000)),
                format!("_Z1f{}i", "F".repeat(60_000)),
                format!("_Z1fIX{}", "ad".repeat(30_000)),
                format!("_Z1fIX{}", "sr1A".repeat(15_000)),
                format!("_Z1fIX{}", "srN1A".repeat(12_000)),
                format!("_Z{}", "Z".repeat(60_000)),
                format!("_Z1f{}", "PS_".repeat(20_000)),
                format!("_Z1fIiEv{}", "RS_".repeat(20_000)),
                format!("_ZN1A{}C1Ev", "B1a".repeat(21_000)),
                format!("_ZN{}C1Ev", "1A".repeat(30_000)),
                format!("_ZN1A{}D1Ev", "IiE".repeat(20_000)),
            ] {
                demangle(&hostile);
            }
        };
        // Half the usual stack size of a thread.
        std::thread::Builder::new().stack_size(1 << 20).spawn(read).unwrap().join().unwrap();
    }

    #[test]
    fn names_that_double_their_text_again_and_again_are_left_alone() {
        // Each argument contains the previous one twice.
        let mut mangled = "_Z1fI1AIiE".to_owned();
        for number in 0..30 {
            let before = if number == 0 { "S1_".to_owned() } else { format!("S{}_", number + 1) };
            mangled += &format!("1AI{before}{before}E");
        }
        mangled += "Evv";
        let start = std::time::Instant::now();
        demangle(&mangled);
        assert!(start.elapsed().as_secs() < 5);
    }
}
