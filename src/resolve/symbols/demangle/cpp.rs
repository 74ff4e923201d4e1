//! C++ names of the Itanium ABI, spelled as c++filt and gdb spell them.

use cpp_demangle::{BorrowedSymbol, DemangleOptions, Symbol};

/// The readable form of a name that begins with `_Z`, without parameters; `None` if it is none.
pub(super) fn demangle(mangled: &str) -> Option<String> {
    if let Ok(symbol) = Symbol::new(mangled) {
        return spell(&symbol);
    }
    if !mangled.contains("sr") {
        return None;
    }
    let by_casts = members_as_casts(mangled);
    match Symbol::new(&by_casts) {
        Ok(symbol) => spell(&symbol).map(|name| casts_as_members(&name)),
        Err(_) => front(mangled),
    }
}

fn spell<T: AsRef<[u8]>>(symbol: &Symbol<T>) -> Option<String> {
    let spell = |options: DemangleOptions| symbol.demangle_with_options(&options).ok();
    let name = spell(DemangleOptions::new().no_params().no_return_type())?;
    let name = match thunk(&name) {
        // Thunks are distinguished by the parameters of their targets.
        Some(_) => spell(DemangleOptions::new()).as_deref().and_then(thunk).unwrap_or(name),
        None => strip_qualifiers(&name).to_owned(),
    };
    Some(as_binutils(&name))
}

/// `{virtual override thunk({offset(-8)}, A::f(int))}` → `non-virtual thunk to A::f(int)`
fn thunk(name: &str) -> Option<String> {
    let (adjustment, target) = name.strip_prefix("{virtual override thunk({")?.split_once("}, ")?;
    let kind = if adjustment.starts_with("virtual") { "virtual" } else { "non-virtual" };
    // A part that the compiler split off (`.cold`) states it behind it.
    let (target, _) = target.rsplit_once(")}")?;
    Some(format!("{kind} thunk to {target}"))
}

/// Qualifiers belong to the parameters, which are left out.
fn strip_qualifiers(mut name: &str) -> &str {
    const QUALIFIERS: [&str; 4] = [" const", " volatile", " &&", " &"];
    while let Some(shorter) = QUALIFIERS.iter().find_map(|qualifier| name.strip_suffix(qualifier)) {
        name = shorter;
    }
    name
}

/// Spells what `cpp_demangle` spells in its own way like c++filt, gdb and perf: an empty pack of template arguments
/// leaves no comma, numbers have suffixes.
fn as_binutils(name: &str) -> String {
    const SUFFIXES: [(&str, &str); 6] = [
        ("(unsigned long)", "ul"),
        ("(unsigned int)", "u"),
        ("(unsigned long long)", "ull"),
        ("(long long)", "ll"),
        ("(long)", "l"),
        ("(int)", ""),
    ];
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(['(', ',']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some(after) = from.strip_prefix(", >") {
            out.push('>');
            rest = after;
            continue;
        }
        let cast = SUFFIXES.iter().find_map(|&(cast, suffix)| Some((from.strip_prefix(cast)?, suffix)));
        let number = cast.and_then(|(after, suffix)| {
            let digits = after.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(after.len());
            (digits > 0).then(|| (after.split_at(digits), suffix))
        });
        rest = match number {
            Some(((digits, after), suffix)) => {
                out.push_str(digits);
                out.push_str(suffix);
                after
            }
            None => {
                out.push_str(&from[..1]);
                &from[1..]
            }
        };
    }
    out.push_str(rest);
    out
}

/// GCC writes a member of a type that depends on a template's arguments as `sr TYPE NAME`, and the type with all its
/// parts as a type elsewhere. `cpp_demangle` supports only the ABI's own form, whose scope is written otherwise, and
/// counts what later parts refer to otherwise, too. A cast, `rc TYPE EXPRESSION`, has the same parts in the same order:
/// in its stead, the rest of the name is read as it was meant.
fn members_as_casts(mangled: &str) -> String {
    let mut out = String::with_capacity(mangled.len());
    let mut rest = mangled;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            'L' | 'S' | 'T' => 1 + number_behind(first, &rest[1..]),
            '0'..='9' => identifier_len(rest),
            's' if is_member(rest) => {
                out.push_str("rc");
                rest = &rest[2..];
                continue;
            }
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(len);
        out.push_str(token);
        rest = behind;
    }
    out
}

/// True if a member of a type that is written out begins here.
fn is_member(rest: &str) -> bool {
    rest.strip_prefix("sr").is_some_and(|scope| scope.starts_with(|c: char| c == 'N' || c == 'S' || c.is_ascii_digit()))
}

/// The length of a part that could be taken for the length of a name: a literal's type and number (`Lm32E`, `Lin1E`).
fn number_behind(first: char, rest: &str) -> usize {
    let count = |from: &str, of: fn(&u8) -> bool| from.bytes().take_while(of).count();
    match (first, rest.bytes().next()) {
        ('L', Some(b'a'..=b'z')) => {
            let of_type = count(rest, u8::is_ascii_lowercase);
            of_type + count(&rest[of_type..], u8::is_ascii_digit)
        }
        ('S', Some(b'a'..=b'z')) => 1,
        ('S', _) => count(rest, |byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()),
        ('T', _) => count(rest, u8::is_ascii_digit),
        _ => 0,
    }
}

/// The length of a name with the number before it that states it; just the number, if not enough follows.
fn identifier_len(rest: &str) -> usize {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let len = rest[..digits].parse().ok().and_then(|len: usize| digits.checked_add(len));
    len.filter(|&len| rest.is_char_boundary(len)).unwrap_or(digits)
}

/// `reinterpret_cast<std::is_same<A, B> >(value)` → `std::is_same<A, B>::value`
fn casts_as_members(name: &str) -> String {
    const CAST: &str = "reinterpret_cast<";
    let mut out = String::with_capacity(name.len());
    // For each open bracket, true if it is a cast's.
    let mut open: Vec<bool> = Vec::new();
    // True if the next closing parenthesis ends a member.
    let mut in_member = false;
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let whole = [CAST, "->"].into_iter().find(|token| rest.starts_with(token));
        let len = whole.map_or(first.len_utf8(), str::len);
        let (token, behind) = rest.split_at(len);
        rest = behind;
        match token {
            CAST => open.push(true),
            "<" => {
                open.push(false);
                out.push('<');
            }
            ">" if open.pop() == Some(true) => {
                out.truncate(out.trim_end_matches(' ').len());
                out.push_str("::");
                rest = rest.strip_prefix('(').unwrap_or(rest);
                in_member = true;
            }
            ")" if in_member => in_member = false,
            token => out.push_str(token),
        }
    }
    out
}

/// The part before the types of a function's result and parameters, if only those cannot be read.
fn front(mangled: &str) -> Option<String> {
    let (symbol, rest) = BorrowedSymbol::with_tail(mangled.as_bytes()).ok()?;
    // The first letter alone is a type.
    let types = mangled.as_bytes().get(mangled.len().saturating_sub(rest.len() + 1)..)?;
    let is_in_types = types.windows(2).any(|two| two == b"sr");
    let name = symbol.demangle_with_options(&DemangleOptions::new().no_params().no_return_type());
    name.ok().filter(|_| is_in_types).map(|name| as_binutils(strip_qualifiers(&name)))
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
        assert_eq!(casts_as_members("f<reinterpret_cast<decltype (a->b)>(c)>"), "f<decltype (a->b)::c>");
        assert_eq!(casts_as_members("f<reinterpret_cast<a<reinterpret_cast<b >(c)> >(d)>(e)"), "f<a<b::c>::d>(e)");
        let many = "reinterpret_cast<b >(c), ".repeat(100_000);
        assert_eq!(casts_as_members(&many), "b::c, ".repeat(100_000));
    }

    #[test]
    fn letters_inside_names_and_numbers_are_not_members() {
        let cases = [
            ("_Z7srSt3fooXsrSt1AIT_E5valueE", "_Z7srSt3fooXrcSt1AIT_E5valueE"),
            ("Lm3072EsrN1AE", "Lm3072ErcN1AE"),
            ("S12_srSt1A", "S12_rcSt1A"),
            ("T3_srS0_", "T3_rcS0_"),
            ("srT_5value", "srT_5value"),
            ("99999999999999999999srSt", "99999999999999999999rcSt"),
            ("9srSté", "9rcSté"),
        ];
        for (mangled, expected) in cases {
            assert_eq!(members_as_casts(mangled), expected);
        }
    }

    #[test]
    fn the_front_of_an_unreadable_input_is_named() {
        assert_eq!(demangle("_ZSt4swapIiENSt9enable_ifIXsr!E4typeERS5_").as_deref(), Some("std::swap<int>"));
        assert_eq!(demangle("_ZN1A1fEsr!").as_deref(), Some("A::f"));
        for unreadable in ["_ZN1A1fE!", "_Zsr!", "_ZSt4swapIXsr!E", "_Zsrsrsr"] {
            assert_eq!(demangle(unreadable), None, "{unreadable}");
        }
    }

    #[test]
    fn thunks_of_which_a_part_was_split_off_are_thunks() {
        let name = demangle("_ZThn8_N1A1fEi.cold");
        assert_eq!(name.as_deref(), Some("non-virtual thunk to A::f(int)"));
    }
}
