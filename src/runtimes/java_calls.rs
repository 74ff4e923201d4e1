//! Splits names of JIT code in which a Java agent lists inlined calls.
//!
//! perf-map-agent can only write one perf map entry per piece of code. It therefore puts the inlined calls in that code
//! into the entry's name, in one of two forms:
//!
//! ```text
//! unfoldall   Lorg/a/Main;::run->Lorg/a/List;::add->Lorg/a/List;::grow      all calls, outermost first
//! unfold      Lorg/a/List;::grow in Lorg/a/Main;::run                       the innermost and the outermost
//! ```
//!
//! Names in other languages may contain `->` and ` in `, too (`C::operator->`, an Erlang atom, a JavaScript function
//! named `a->b`). A name is therefore split only if all parts are Java methods in the agent's notation, which depends
//! on its options: `Lorg/a/List;::add` (old versions `.add`); `org.a.List::add` with `dottedclass` and `cleanclass`;
//! followed by types with `msig`, by `(List.java:12)` with `sourcepos`, or by the marks `_[j]` and `_[i]`. For classes
//! without a package, `cleanclass` leaves names that could be C++ (`Main::run`), so at least one part must be
//! unmistakably Java. The agent truncates very long names, so the last part may be incomplete.

/// The text between a caller and its callee, in names with all calls.
const ARROW: &str = "->";
/// The text between the innermost and the outermost call, in names with only these two.
const IN: &str = " in ";
/// The text that the agent writes in place of a name that it can't determine.
const NO_NAME: &str = "<error writing signature>";

/// The functions that one joined name lists: a compiled function, and the calls in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedCalls<'n> {
    /// The function that was compiled, into which the others were inlined.
    pub root: &'n [u8],
    /// The calls that were inlined into `root`, outermost first.
    pub expanded: Vec<&'n [u8]>,
}

/// Splits a name into the functions that it lists. `None` if it names a single function, or if it may be something else
/// than a list of Java methods.
pub fn split_joined(name: &[u8]) -> Option<JoinedCalls<'_>> {
    // Returns early for most names, which contain neither separator.
    memchr::memmem::find(name, ARROW.as_bytes()).or_else(|| memchr::memmem::find(name, IN.as_bytes()))?;
    let name = std::str::from_utf8(name).ok()?;
    let mut parts: Vec<&str> = name.split(ARROW).collect();
    if parts.len() == 1 {
        // In the form `CALLEE in CALLER`, the innermost call comes first. Both parts must be unmistakable Java methods,
        // because names in any language may contain ` in `.
        parts = name.splitn(2, IN).collect();
        parts.reverse();
        if !parts.iter().all(|part| is_java(part)) {
            return None;
        }
    }
    // From here on, the outermost call comes first in both forms. All parts must look like Java methods, and at least
    // one must be unmistakable.
    let (last, callers) = parts.split_last()?;
    let may_be_java = |part: &&str| *part == NO_NAME || shape(part).is_some();
    // The agent may have truncated the last part to the start of a method's name.
    let may_last_be_java = may_be_java(last) || (is_java(callers.first()?) && is_beginning(last));
    let may_all_be_java = may_last_be_java && callers.iter().all(may_be_java);
    if !may_all_be_java || !parts.iter().any(|part| is_java(part)) {
        return None;
    }
    let (root, expanded) = parts.split_first()?;
    Some(JoinedCalls { root: root.as_bytes(), expanded: expanded.iter().map(|part| part.as_bytes()).collect() })
}

/// True if the name can only be that of a Java method.
pub fn is_method(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(is_java)
}

/// True if the name can only be that of a Java method.
fn is_java(name: &str) -> bool {
    shape(name) == Some(MethodShape::Certain)
}

/// How certain it is that a name is a Java method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MethodShape {
    /// The name can only be that of a Java method.
    Certain,
    /// The name may be something else, such as a C++ function.
    Possible,
}

/// How certain it is that a name is that of a Java method. `None` if it certainly isn't. It is certain if the class is
/// in the form of a type signature or has a package; without either, the name may be C++.
fn shape(name: &str) -> Option<MethodShape> {
    // The marks that the agent can append to compiled (`j`) and inlined (`i`) methods; see the module's documentation.
    let name = name.strip_suffix("_[j]").or_else(|| name.strip_suffix("_[i]")).unwrap_or(name);
    let (class, method_and_types, is_signature) = split_class(name)?;
    let types_start = method_and_types.find('(').unwrap_or(method_and_types.len());
    let (method, types) = method_and_types.split_at(types_start);
    let has_package = class.contains(['/', '.']);
    let is_class = class.split(['/', '.']).all(is_identifier);
    let is_method = is_identifier(method) || ["<init>", "<clinit>"].contains(&method);
    if !is_class || !is_method || !is_tail(types) {
        return None;
    }
    Some(if is_signature || has_package { MethodShape::Certain } else { MethodShape::Possible })
}

/// Splits a method's name at the separator between class and method. The first value is the class, and the second is
/// the rest: the method, perhaps followed by types. The third is true if the class is written as a type signature
/// (`Lorg/a/List;`). `None` if there is no separator.
fn split_class(name: &str) -> Option<(&str, &str, bool)> {
    if let Some((class, rest)) = name.strip_prefix('L').and_then(|rest| rest.split_once(';'))
        && let Some(method) = rest.strip_prefix("::").or_else(|| rest.strip_prefix('.'))
    {
        return Some((class, method, true));
    }
    let (class, method) = name.split_once("::")?;
    Some((class, method, false))
}

/// True for identifiers in Java and other JVM languages. Names of hidden classes contain `+0x…`, Kotlin's may contain
/// `-`.
fn is_identifier(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_$-+".contains(&byte) || !byte.is_ascii();
    !text.is_empty() && text.bytes().all(is_allowed)
}

/// True if the text may follow a method's name: its parameter and return types, a source location, or both.
fn is_tail(text: &str) -> bool {
    // If there are both types and a location, the location starts at the last bracket.
    let (types, location) = text.split_at(text.rfind('(').unwrap_or(0));
    let is_both = are_types(types) && is_source_location(location);
    text.is_empty() || is_source_location(text) || are_types(text) || is_both
}

/// True for a location such as `(List.java:12)`.
fn is_source_location(text: &str) -> bool {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let line = inner.and_then(|inner| inner.rsplit_once(':')).map(|(_, line)| line);
    line.is_some_and(|line| line.parse::<i64>().is_ok())
}

/// True for parameter types and a return type, such as `(ILjava/lang/Object;)V`.
fn are_types(text: &str) -> bool {
    let Some((parameters, returned)) = text.strip_prefix('(').and_then(|text| text.split_once(')')) else {
        return false;
    };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_$-+/.;[".contains(&byte) || !byte.is_ascii();
    !returned.is_empty() && parameters.bytes().chain(returned.bytes()).all(is_allowed)
}

/// True if the text may be the start of a Java method's name that was truncated.
fn is_beginning(text: &str) -> bool {
    text.starts_with('L') && text.bytes().all(|byte| byte.is_ascii_graphic() || !byte.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(name: &str) -> Vec<String> {
        let Some(JoinedCalls { root, expanded }) = split_joined(name.as_bytes()) else { return Vec::new() };
        let all = std::iter::once(root).chain(expanded);
        all.map(|part| String::from_utf8(part.to_vec()).unwrap()).collect()
    }

    #[test]
    fn all_spellings_of_the_agent_are_taken_apart() {
        assert_eq!(parts("La/B;::f->La/C;::g"), ["La/B;::f", "La/C;::g"]);
        assert_eq!(parts("La/B;::f->La/C;::<init>->La/D;::h"), ["La/B;::f", "La/C;::<init>", "La/D;::h"]);
        assert_eq!(parts("LMain;.f->LMain;.g"), ["LMain;.f", "LMain;.g"]);
        assert_eq!(parts("La.B;::f->La.C;::g"), ["La.B;::f", "La.C;::g"]);
        assert_eq!(parts("a.B::f->a.C$D::lambda$0"), ["a.B::f", "a.C$D::lambda$0"]);
        assert_eq!(parts("a/B::f->Main::g"), ["a/B::f", "Main::g"]);
        assert_eq!(parts("a/B::f->Lists::of(La/B;)La/B;"), ["a/B::f", "Lists::of(La/B;)La/B;"]);
        assert_eq!(parts("La/B;::f(I[J)V->La/C;::g()La/X;"), ["La/B;::f(I[J)V", "La/C;::g()La/X;"]);
        assert_eq!(
            parts("La/B;::f(I)V(B.java:7)->La/C;::g(C.java:-1)"),
            ["La/B;::f(I)V(B.java:7)", "La/C;::g(C.java:-1)"]
        );
        assert_eq!(parts("La/B;::f_[j]->La/C;::g_[i]"), ["La/B;::f_[j]", "La/C;::g_[i]"]);
        let hidden = "La/B$$Lambda$14/0x00000008010;::f->La/C$$Lambda+0x7f01;::g";
        assert_eq!(parts(hidden).len(), 2);
        assert_eq!(parts("La/B;::f-><error writing signature>->La/C;::g").len(), 3);
        assert_eq!(parts("Lorg/größe/B;::f->Lokio/-Util;::g").len(), 2);
    }

    #[test]
    fn a_call_in_a_function_is_the_inner_one() {
        assert_eq!(parts("La/C;::g in La/B;::f"), ["La/B;::f", "La/C;::g"]);
        assert_eq!(parts("a.C::g(I)V in a.B::f(I)V"), ["a.B::f(I)V", "a.C::g(I)V"]);
    }

    #[test]
    fn a_name_that_was_cut_keeps_its_whole_parts() {
        assert_eq!(parts("La/B;::f->La/C;::g->Lorg/apa"), ["La/B;::f", "La/C;::g", "Lorg/apa"]);
        assert_eq!(parts("La/B;::f->L"), ["La/B;::f", "L"]);
    }

    #[test]
    fn names_of_other_tools_stay_whole() {
        for name in [
            "C::operator->",
            "ns::C::operator->()",
            "ns::C::operator->() const",
            "auto f(int)->int",
            "a->b",
            "JS:*a->b /x/y.js:1:1",
            "JS:~Main::run->Main::next /x.js:1:1",
            "Main::run->Main::next",
            "$lists:'-f/1->g/2'/3",
            "'Elixir.A':'x->y'/0",
            "TRACE-1$App\\A->f$3",
            "App\\A::f->g",
            "wasm[0]::function[3]::f->g",
            "fn(a) -> b",
            "py::f->g:/x.py",
            "x.y::z->w",
            "La/B;::f->stub",
            "La/B;::f->",
            "->La/B;::f",
            "La/B;::f",
            "La/B;->f",
            "block in Foo#bar",
            "Foo::Bar in Foo::Baz",
            "rescue in a.b::c",
            "",
            "->",
            " in ",
        ] {
            assert_eq!(parts(name), Vec::<String>::new(), "{name}");
        }
        assert_eq!(split_joined(b"La/B;::f->La/C;::\xff"), None);
    }

    #[test]
    fn only_java_s_methods_are_known_without_their_callers() {
        for (name, is) in
            [("La/B;::f", true), ("a.B::f", true), ("Main::f", false), ("std::f(int)", false), ("f", false)]
        {
            assert_eq!(is_method(name.as_bytes()), is, "{name}");
        }
    }
}
