//! Makes names of JIT code readable: converts the notations of runtimes to names as people would write them.
//!
//! | runtime | raw | pretty | with tiers merged |
//! |---|---|---|---|
//! | V8 | `JS:*push /a/list.js:10:5` | `push list.js:10:5 turbofan` | `push list.js:10:5` |
//! | JavaScriptCore | `JSC-FTL: push#An5f6s` | `push#An5f6s ftl` | `push#An5f6s` |
//! | OpenJDK | `Ljava/util/List;::add(I)V`, `boolean java.util.List.add(int)` | `java.util.List.add` | the same |
//! | OpenJDK, from a log | `boolean java.util.List.add(int) [c2]` | `java.util.List.add c2` | `java.util.List.add` |
//! | .NET | `void [App] P::f(int32)[OptimizedTier1]` | `P::f OptimizedTier1` | `P::f` |
//! | CPython | `py::push:/a/list.py` | `push list.py` | the same |
//! | Wasmtime | `wasm[0]::function[3]::push` | `push wasm` | the same |
//!
//! Words that are added to a function's name have no brackets, because those would be special characters in a search.
//! Of a path, the file name is kept. If other files of the profile have the same name, as many directories as needed
//! are kept, too, so that different functions stay different. Names in any other notation stay as they are.

use crate::model::tier::Tier;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// How names of JIT code are spelled, from least to most readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum JitNames {
    /// As the runtime wrote them, such as `JS:*push /a/list.js:10:5`.
    #[default]
    Raw,
    /// Readable, with a word for the tier if the runtime's name states it.
    Pretty,
    /// Readable, without the tier, so that all tiers of a function have the same name. The frames still state the tier.
    Merged,
}

/// Converts the names of a profile to readable ones. How many directories a name keeps depends on the other names, so
/// [`Self::new`] must see all of them first.
#[derive(Debug, Default)]
pub struct ReadableNames {
    /// True if readable names leave out the tier ([`JitNames::Merged`]).
    merged: bool,
    /// The number of directories before the file name that a readable name keeps of its path. For a name that isn't
    /// listed, [`default_dirs`] gives the number.
    dirs: FxHashMap<Box<[u8]>, usize>,
}

impl ReadableNames {
    /// Examines all names of the profile, to find out how many directories readable names must keep of their paths so
    /// that different functions stay different. With `merged`, readable names leave out the tier.
    pub fn new<'n>(names: impl Iterator<Item = &'n [u8]>, merged: bool) -> Self {
        /// A name that contains a path with directories.
        struct NameWithPath<'n> {
            name: &'n [u8],
            parts: NameParts<'n>,
            /// The number of directories that the readable name keeps of its path.
            dirs: usize,
        }
        let distinct: FxHashSet<&[u8]> = names.collect();
        let mut names: Vec<NameWithPath<'_>> = Vec::new();
        for name in distinct {
            if let Some(parts) = parse(name)
                && parts.has_dirs()
            {
                let dirs = default_dirs(parts.path);
                names.push(NameWithPath { name, parts, dirs });
            }
        }
        // While two functions in different files would have the same readable name, both names keep one more directory
        // if their paths have more.
        loop {
            // By readable name, the files of all functions that would be called so. The name is without the tier,
            // because names that differ only in the tier are of the same function.
            let mut paths_by_text: FxHashMap<String, FxHashSet<&str>> = FxHashMap::default();
            for NameWithPath { parts, dirs, .. } in &names {
                paths_by_text.entry(parts.spell_without_tier(*dirs)).or_default().insert(parts.path);
            }
            let mut has_changed = false;
            for NameWithPath { parts, dirs, .. } in &mut names {
                let is_ambiguous =
                    paths_by_text.get(&parts.spell_without_tier(*dirs)).is_some_and(|paths| paths.len() > 1);
                if is_ambiguous && *dirs < parts.path.matches('/').count() {
                    *dirs += 1;
                    has_changed = true;
                }
            }
            if !has_changed {
                break;
            }
        }
        // Store only the names that keep another number of directories than the default.
        names.retain(|NameWithPath { parts, dirs, .. }| *dirs != default_dirs(parts.path));
        let dirs = names.into_iter().map(|NameWithPath { name, dirs, .. }| (name.into(), dirs)).collect();
        Self { merged, dirs }
    }

    /// The runtime's name without the tier, so that all tiers of a function have the same name. Unlike a readable name,
    /// it keeps the arguments, because overloaded functions differ only in these.
    pub fn without_tier(name: &[u8]) -> Cow<'_, [u8]> {
        let Some(parts) = parse(name).filter(|parts| !parts.tier.is_empty()) else { return Cow::Borrowed(name) };
        // Removes the tier's word, but not brackets around it. The function's name may contain the word, too, so the
        // last occurrence is removed. V8's names have a mark such as `*` instead of the word, so they are composed
        // anew.
        let around_tier = std::str::from_utf8(name).ok().and_then(|text| text.rsplit_once(parts.tier));
        let text = match around_tier {
            Some((before, after)) => format!("{before}{after}"),
            // `usize::MAX` keeps all directories of the path.
            None => parts.spell_without_tier(usize::MAX),
        };
        Cow::Owned(text.into_bytes())
    }

    /// Makes a name readable. In names that a Java agent joined from a function and its inlined calls
    /// (`La/B;::f->La/C;::g`), each part is converted.
    pub fn convert<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        if let Some(joined) = self.convert_joined(name) {
            return Cow::Owned(joined.into_bytes());
        }
        let Some(parts) = parse(name) else { return Cow::Borrowed(name) };
        let dirs = self.dirs.get(name).copied().unwrap_or_else(|| default_dirs(parts.path));
        Cow::Owned(parts.spell(dirs, self.merged).into_bytes())
    }

    /// Converts a name that a Java agent joined from several functions. `None` if it isn't such a name. Java methods
    /// have no path, so no directories are kept (0).
    fn convert_joined(&self, name: &[u8]) -> Option<String> {
        const ARROW: &str = "->";
        let name = std::str::from_utf8(name).ok()?;
        if !name.starts_with('L') || !name.contains(ARROW) {
            return None;
        }
        let mut converted = Vec::new();
        for part in name.split(ARROW) {
            converted.push(parse_java(part)?.spell(0, self.merged));
        }
        Some(converted.join(ARROW))
    }
}

/// A runtime's name for JIT code, split into the function, its source position, and how it was compiled.
#[derive(Debug, Clone, Default)]
struct NameParts<'n> {
    function: Cow<'n, str>,
    /// The path of the source file. Empty if the name contains none.
    path: &'n str,
    /// The line and column after the path, such as `:10:5`. Empty if the name contains none.
    position: &'n str,
    /// A word for the kind of code, such as `wasm`; empty for ordinary functions. Unlike the tier, it is kept when
    /// tiers are merged.
    code_kind: &'static str,
    /// The runtime's word for the tier. Empty if the name has none.
    tier: &'n str,
}

impl NameParts<'_> {
    fn has_dirs(&self) -> bool {
        self.path.contains('/')
    }

    /// Makes a readable name of the parts. It keeps `dirs` directories of the path, and leaves out the tier if
    /// `merged`.
    fn spell(&self, dirs: usize, merged: bool) -> String {
        let mut text = self.spell_without_tier(dirs);
        if !merged && !self.tier.is_empty() {
            text.push(' ');
            text.push_str(self.tier);
        }
        text
    }

    /// Makes a readable name of the parts except for the tier. It keeps `dirs` directories of the path.
    fn spell_without_tier(&self, dirs: usize) -> String {
        let mut text = self.function.clone().into_owned();
        let path = last_parts(self.path, dirs);
        for word in [&format!("{path}{}", self.position), self.code_kind] {
            if !word.is_empty() {
                text.push(' ');
                text.push_str(word);
            }
        }
        text
    }
}

/// The file name at the end of a path, with up to `dirs` directories before it.
fn last_parts(path: &str, dirs: usize) -> &str {
    path.rmatch_indices('/').nth(dirs).map_or(path, |(slash, _)| &path[slash + 1..])
}

/// The number of directories that a name keeps of its path, unless more are needed to tell functions apart. It isn't 0
/// for file names that many directories have, such as `index.js`.
fn default_dirs(path: &str) -> usize {
    let file = last_parts(path, 0);
    let stem = file.split('.').next().unwrap_or(file);
    usize::from(["index", "__init__", "__main__"].contains(&stem))
}

/// Splits a runtime's name into its parts, by the first notation that fits. `None` if none does.
fn parse(name: &[u8]) -> Option<NameParts<'_>> {
    let text = std::str::from_utf8(name).ok()?;
    [parse_v8, parse_jsc, parse_python, parse_wasm, parse_dot_net, parse_java, parse_tiered]
        .iter()
        .find_map(|parse| parse(text))
}

/// Parses V8's names, which consist of a tag, a mark, the function and its location, such as `JS:*push
/// /a/list.js:10:5`. `Logger::CodeCreateEvent` writes them (V8 src/logging/log.cc). The mark stands for the tier;
/// `CodeKindToMarker` (src/objects/code-kind.cc) has all of them.
fn parse_v8(name: &str) -> Option<NameParts<'_>> {
    const TAGS: &[&str] = &["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"];
    let Some(untagged) = TAGS.iter().find_map(|tag| name.strip_prefix(tag)) else { return parse_v8_builtin(name) };
    if let Some(wasm) = parse_v8_wasm(untagged) {
        return Some(wasm);
    }
    let (tier, unmarked) = split_v8_mark(untagged);
    // A space separates the function's name from its location, but both may contain spaces, too (`get x`, paths). So
    // the location starts at the first space before a usual start of a path or, if there is none, at the last space.
    let location_start = [" /", " file:", " node:"].iter().find_map(|start| unmarked.find(start));
    let (function, location) = match location_start.or_else(|| unmarked.rfind(' ')) {
        Some(space) => (&unmarked[..space], unmarked[space..].trim()),
        None => (unmarked, ""),
    };
    let function = if function.is_empty() { "anonymous" } else { function };
    let (path, position) = location.split_at(location.len() - position_len(location));
    Some(NameParts { function: function.into(), path, position, code_kind: "", tier })
}

/// Parses V8's names of code that isn't from a script: `Builtin:name`, `Builtins_name` and `BytecodeHandler:name`.
fn parse_v8_builtin(name: &str) -> Option<NameParts<'_>> {
    let builtin = name.strip_prefix("Builtin:").or_else(|| name.strip_prefix("Builtins_"));
    let (function, code_kind) = match builtin {
        Some(builtin) => (builtin, "builtin"),
        None => (name.strip_prefix("BytecodeHandler:")?, "bytecode handler"),
    };
    Some(NameParts { function: function.into(), code_kind, ..NameParts::default() })
}

/// Splits V8's mark for the tier off a name, from which the tag was already removed. Returns the tier (empty without a
/// mark) and the name without the mark. An `o` before the mark means on-stack replacement, and `'` after it means code
/// that is specific to a context; both are dropped.
fn split_v8_mark(untagged: &str) -> (&'static str, &str) {
    let text = untagged.strip_prefix('o').filter(|text| text.starts_with(['*', '+'])).unwrap_or(untagged);
    let tier = match text.as_bytes().first() {
        Some(b'*') => "turbofan",
        Some(b'+') => "maglev",
        Some(b'^') => "sparkplug",
        Some(b'~') => "interpreted",
        _ => return ("", untagged),
    };
    let unmarked = &text[1..];
    (tier, unmarked.strip_prefix('\'').unwrap_or(unmarked))
}

/// Parses what follows the tag in V8's names of WebAssembly functions: `function-index-compiler`, to which jitgraft may
/// have appended a source location.
fn parse_v8_wasm(name: &str) -> Option<NameParts<'_>> {
    let (name, path, position) = split_location(name);
    let (rest, tier) = name.rsplit_once('-').filter(|(_, tier)| ["liftoff", "turbofan"].contains(tier))?;
    let (function, number) = rest.rsplit_once('-')?;
    // Without a number before the compiler, this isn't the name of a WebAssembly function.
    number.parse::<u32>().ok()?;
    let function = match function.strip_prefix("wasm-function[").and_then(|rest| rest.strip_suffix(']')) {
        Some(number) => format!("function {number}").into(),
        None => function.into(),
    };
    Some(NameParts { function, path, position, code_kind: "wasm", tier })
}

/// Splits a source location such as ` /a/fib.rs:4:1` off a name. Returns the name, the path and the position; the last
/// two are empty if there is no location.
fn split_location(name: &str) -> (&str, &str, &str) {
    let Some(blank) = name.find(" /") else { return (name, "", "") };
    let place = &name[blank + 1..];
    let position_len = position_len(place);
    if position_len == 0 {
        return (name, "", "");
    }
    let (path, position) = place.split_at(place.len() - position_len);
    (&name[..blank], path, position)
}

/// The length of the line and column at the end of a location, such as `:10:5`, or of the line alone. 0 if there is
/// none.
fn position_len(place: &str) -> usize {
    // The length of a colon and a number at the end of a text; 0 if it ends otherwise.
    let number_len = |text: &str| {
        let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
        let has_colon = text[..text.len() - digits].ends_with(':');
        if digits > 0 && has_colon { digits + 1 } else { 0 }
    };
    let column_len = number_len(place);
    column_len + number_len(&place[..place.len() - column_len])
}

/// Parses `JSC-TIER: function#hash`, as in JavaScriptCore's jitdumps. The hash stays a part of the function's name.
fn parse_jsc(name: &str) -> Option<NameParts<'_>> {
    const TIERS: &[(&str, &str)] = &[
        ("JSC-Baseline: ", "baseline"),
        ("JSC-DFG: ", "dfg"),
        ("JSC-FTL: ", "ftl"),
        ("JSC-WasmBBQ: ", "bbq"),
        ("JSC-WasmOMG: ", "omg"),
    ];
    let (function, tier) = TIERS.iter().find_map(|(tag, tier)| Some((name.strip_prefix(tag)?, *tier)))?;
    let code_kind = if ["bbq", "omg"].contains(&tier) { "wasm" } else { "" };
    Some(NameParts { function: function.into(), code_kind, tier, ..NameParts::default() })
}

/// Parses `py::function:file` (CPython's Python/perf_trampoline.c).
fn parse_python(name: &str) -> Option<NameParts<'_>> {
    let (function, path) = name.strip_prefix("py::")?.split_once(':')?;
    Some(NameParts { function: function.into(), path, ..NameParts::default() })
}

/// Parses `wasm[N]::function[M]` or `wasm[N]::function[M]::name` (wasmtime's `func_symbol_name`). Other words than
/// `function` stand for auxiliary code. jitgraft may have appended a source location.
fn parse_wasm(name: &str) -> Option<NameParts<'_>> {
    let (name, path, position) = split_location(name);
    let rest = name.strip_prefix("wasm[")?;
    let (module, rest) = rest.split_once("]::")?;
    let (what, rest) = rest.split_once('[')?;
    let (number, rest) = rest.split_once(']')?;
    let function = match rest.strip_prefix("::") {
        Some(function) if !function.is_empty() && what == "function" => function.into(),
        _ => format!("{what} {number} of module {module}").into(),
    };
    Some(NameParts { function, path, position, code_kind: "wasm", tier: "" })
}

/// Parses `returntype [assembly] Type::method(arguments)[Tier]`.
fn parse_dot_net(name: &str) -> Option<NameParts<'_>> {
    let (rest, tier) = name.strip_suffix(']')?.rsplit_once(")[")?;
    let (head, _) = rest.split_once('(')?;
    let (_, function) = head.split_once("] ")?;
    let is_method = function.contains("::") && tier.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_method.then(|| NameParts { function: function.into(), tier, ..NameParts::default() })
}

/// Parses the name of a Java method in the JVM's notation or in Java's own.
fn parse_java(name: &str) -> Option<NameParts<'_>> {
    parse_jvm_method(name).or_else(|| parse_java_signature(name))
}

/// Parses a method in the JVM's notation: `Ljava/util/List;::add(I)V`, with `::` or `.` before the method.
fn parse_jvm_method(name: &str) -> Option<NameParts<'_>> {
    let (class, method) = name.strip_prefix('L')?.split_once(';')?;
    let is_in_class = |byte: u8| byte.is_ascii_alphanumeric() || b"/_$".contains(&byte) || !byte.is_ascii();
    if !class.bytes().all(is_in_class) {
        return None;
    }
    let method = method.trim_start_matches([':', '.']);
    let method = method.split('(').next().unwrap_or(method);
    let function = format!("{}.{method}", class.replace('/', ".")).into();
    Some(NameParts { function, ..NameParts::default() })
}

/// Parses a signature in Java's notation: `boolean java.util.List.add(int)`. In names from a log, the compiler follows
/// in brackets. `None` without a return type, a class and arguments: such a name may be of another language.
fn parse_java_signature(name: &str) -> Option<NameParts<'_>> {
    let (signature, tier) = match name.strip_suffix(']').and_then(|name| name.rsplit_once(" [")) {
        Some((signature, tier)) if ["c1", "c2", "jvmci"].contains(&tier) => (signature, tier),
        _ => (name, ""),
    };
    let (head, arguments) = signature.split_once('(')?;
    let (return_type, method) = head.split_once(' ')?;
    let is_in_word = |byte: u8| byte.is_ascii_alphanumeric() || b"._$[]<>-/".contains(&byte) || !byte.is_ascii();
    let are_words = return_type.bytes().all(is_in_word) && method.bytes().all(is_in_word);
    if !are_words || !arguments.ends_with(')') || !method.contains('.') {
        return None;
    }
    Some(NameParts { function: method.to_owned().into(), tier, ..NameParts::default() })
}

/// Parses `function [tier]`, which jitgraft writes for runtimes that have no notation of their own. The tier is one of
/// jitgraft's names for tiers ([`Tier::name`]).
fn parse_tiered(name: &str) -> Option<NameParts<'_>> {
    let (function, tier) = name.strip_suffix(']')?.rsplit_once(" [")?;
    let tier = Tier::from_name(tier).filter(|tier| tier.is_step())?;
    if function.is_empty() {
        return None;
    }
    Some(NameParts { function: function.into(), tier: tier.name(), ..NameParts::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(names: &[&str], merged: bool) -> Vec<String> {
        let readable = ReadableNames::new(names.iter().map(|name| name.as_bytes()), merged);
        names.iter().map(|name| String::from_utf8(readable.convert(name.as_bytes()).into_owned()).unwrap()).collect()
    }

    fn pretty(name: &str) -> String {
        spelled(&[name], false).remove(0)
    }

    fn merged(name: &str) -> String {
        spelled(&[name], true).remove(0)
    }

    #[test]
    fn a_function_is_one_whatever_its_tiers_but_not_with_another_s_arguments_or_file() {
        let same = |one: &str, other: &str| {
            ReadableNames::without_tier(one.as_bytes()) == ReadableNames::without_tier(other.as_bytes())
        };
        assert!(same("JS:~push /a/list.js:10:5", "JS:*push /a/list.js:10:5"));
        assert!(!same("JS:*push /a/list.js:10:5", "JS:*push /b/list.js:10:5"));
        assert!(same("void [App] P::f(int32)[Tier0]", "void [App] P::f(int32)[OptimizedTier1]"));
        assert!(!same("void [App] P::f(int32)[Tier0]", "void [App] P::f(int64)[Tier0]"));
        assert!(!same("Ljava/lang/S;::append(I)V", "Ljava/lang/S;::append(J)V"));
        assert!(same("int S.f(int) [c1]", "int S.f(int) [c2]"));
        assert!(!same("int S.f(int) [c1]", "int S.f(long) [c1]"));
    }

    #[test]
    fn v8_names_keep_their_tier_as_a_plain_word() {
        assert_eq!(pretty("JS:*push /a/list.js:10:5"), "push list.js:10:5 turbofan");
        assert_eq!(pretty("JS:o*'push /a/list.js:10:5"), "push list.js:10:5 turbofan");
        assert_eq!(pretty("LazyCompile:~ node:fs:1:2"), "anonymous node:fs:1:2 interpreted");
        assert_eq!(pretty("JS:^get size /a b/c.js:1:1"), "get size c.js:1:1 sparkplug");
        assert_eq!(pretty("JS:+f file:///x/a.mjs:1:1"), "f a.mjs:1:1 maglev");
        assert_eq!(pretty("JS:~"), "anonymous interpreted");
        assert_eq!(pretty("JS:other /a/b.js:1:2"), "other b.js:1:2");
        assert_eq!(pretty("Builtin:ArrayPush"), "ArrayPush builtin");
        assert_eq!(pretty("BytecodeHandler:LdaSmi.Wide"), "LdaSmi.Wide bytecode handler");
        assert_eq!(pretty("JS:wasm-function[7]-7-liftoff"), "function 7 wasm liftoff");
        assert_eq!(pretty("JS:a::fib-7-liftoff /src/fib.rs:4:1"), "a::fib fib.rs:4:1 wasm liftoff");
    }

    #[test]
    fn one_function_has_one_merged_name() {
        for mark in ["~", "^", "+", "*", "o*", "o+", "*'"] {
            assert_eq!(merged(&format!("JS:{mark}push /a/list.js:10:5")), "push list.js:10:5");
        }
        assert_eq!(merged("Function:fib-3-turbofan"), merged("JS:fib-3-liftoff"));
        assert_eq!(merged("JSC-FTL: push#An5f6s"), merged("JSC-Baseline: push#An5f6s"));
        assert_eq!(merged("void [App] P::f(int32)[QuickJitted]"), "P::f");
        assert_eq!(merged("sort [baseline]"), "sort");
        assert_eq!(merged("Builtin:ArrayPush"), "ArrayPush builtin");
    }

    #[test]
    fn functions_of_two_files_that_are_called_alike_stay_two() {
        let names =
            ["JS:*f /x/a/list.js:1:1", "JS:~f /x/a/list.js:1:1", "JS:*f /x/b/list.js:1:1", "JS:*g /x/b/list.js:1:1"];
        assert_eq!(spelled(&names, true), ["f a/list.js:1:1", "f a/list.js:1:1", "f b/list.js:1:1", "g list.js:1:1"]);
        let deep = ["py::f:/one/x/y.py", "py::f:/two/x/y.py", "py::f:y.py"];
        assert_eq!(spelled(&deep, false), ["f one/x/y.py", "f two/x/y.py", "f y.py"]);
        assert_eq!(pretty("JS:~ /a/node_modules/left/index.js:1:1"), "anonymous left/index.js:1:1 interpreted");
    }

    #[test]
    fn java_python_wasm_and_others() {
        assert_eq!(pretty("Ljava/util/List;::add(I)V"), "java.util.List.add");
        assert_eq!(pretty("Ljava/util/List;.<init>(Ljava/lang/Object;)V"), "java.util.List.<init>");
        assert_eq!(pretty("La/B;::f->La/C$D;::g->La/E;::<init>"), "a.B.f->a.C$D.g->a.E.<init>");
        assert_eq!(pretty("La/B;::f->stub"), "a.B.f->stub");
        assert_eq!(pretty("LW;work(I)J"), "W.work");
        assert_eq!(pretty("LW;mul([[DI)V"), "W.mul");
        assert_eq!(pretty("boolean java.util.List.add(int, java.lang.Object)"), "java.util.List.add");
        assert_eq!(pretty("boolean java.util.List.add(int) [c2]"), "java.util.List.add c2");
        assert_eq!(merged("boolean java.util.List.add(int) [c1]"), "java.util.List.add");
        assert_eq!(pretty("java.lang.Object Größe$$Lambda/0x80000.apply(int)"), "Größe$$Lambda/0x80000.apply");
        assert_eq!(pretty("py::push:/usr/lib/list.py"), "push list.py");
        assert_eq!(pretty("py::<module>:<frozen x>"), "<module> <frozen x>");
        assert_eq!(pretty("wasm[0]::function[3]::a::f /src/fib.rs:4:1"), "a::f fib.rs:4:1 wasm");
        assert_eq!(pretty("wasm[0]::function[3]"), "function 3 of module 0 wasm");
        assert_eq!(pretty("wasm[0]::function[3]::<T as U>::f"), "<T as U>::f wasm");
        assert_eq!(pretty("wasm[0]::array_to_wasm_trampoline[201]"), "array_to_wasm_trampoline 201 of module 0 wasm");
        assert_eq!(pretty("JSC-DFG: /a/list.js#CAj2pM"), "/a/list.js#CAj2pM dfg");
        assert_eq!(pretty("void [App] P::f(int32)[OptimizedTier1]"), "P::f OptimizedTier1");
    }

    #[test]
    fn marks_added_to_a_name_are_not_a_pattern_to_a_search() {
        for name in ["JS:*push /a/list.js:10:5", "JS:~ /x.js:1:1", "Builtin:A", "BytecodeHandler:B", "py::f:/a.py"] {
            assert!(
                !pretty(name).contains(['(', ')', '[', ']', '{', '}', '*', '+', '?', '^', '$', '|', '\\']),
                "{name}"
            );
        }
    }

    #[test]
    fn other_names_stay() {
        for name in ["Interpreter", "L1", "operator new(unsigned long)", "$lists:reverse/1", "", "TRACE-1$f$2", "x [y]"]
        {
            assert_eq!(pretty(name), name);
        }
    }
}
