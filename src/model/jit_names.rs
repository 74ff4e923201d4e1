//! JIT names made readable: the runtimes' own spellings as people write them.
//!
//! | runtime | raw | pretty |
//! |---|---|---|
//! | V8 | `JS:*push /a/list.js:10:5` | `push /a/list.js:10:5 [turbofan]` |
//! | OpenJDK | `Ljava/util/List;::add(I)V`, `boolean java.util.List.add(int)` | `java.util.List.add` |
//! | CPython | `py::push:/a/list.py` | `push (list.py)` |
//! | Wasmtime | `wasm[0]::function[3]::push` | `push (wasm)` |
//!
//! The tier of V8's code is kept as an annotation. A name that is none of these stays as it is.

use std::borrow::Cow;

/// The readable form of a name.
pub fn pretty(name: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(name) else { return Cow::Borrowed(name) };
    let readable = v8(text).or_else(|| python(text)).or_else(|| wasm(text)).or_else(|| java(text));
    readable.map_or(Cow::Borrowed(name), |readable| Cow::Owned(readable.into_bytes()))
}

/// `TAG:` + tier + `function place`, as `Logger::CodeCreateEvent` spells it (V8 src/logging/log.cc). The tier marks
/// are those of `CodeKindToMarker` (src/objects/code-kind.cc).
fn v8(name: &str) -> Option<String> {
    const TAGS: &[&str] = &["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"];
    let rest = TAGS.iter().find_map(|tag| name.strip_prefix(tag));
    let Some(rest) = rest else {
        let builtin = name.strip_prefix("Builtin:").or_else(|| name.strip_prefix("Builtins_"));
        let handler = name.strip_prefix("BytecodeHandler:").map(|handler| format!("{handler} [bytecode handler]"));
        return builtin.map(|builtin| format!("{builtin} [builtin]")).or(handler);
    };
    let (tier, rest) = match rest.as_bytes().first() {
        Some(b'*') => (" [turbofan]", &rest[1..]),
        Some(b'+') => (" [maglev]", &rest[1..]),
        Some(b'^') => (" [sparkplug]", &rest[1..]),
        Some(b'~') => (" [interpreted]", &rest[1..]),
        _ => ("", rest),
    };
    // The function's name, a blank, its place.
    let (name, place) = rest.split_once(' ').unwrap_or((rest, ""));
    let name = if name.is_empty() { "(anonymous)" } else { name };
    let place = place.trim();
    Some(if place.is_empty() { format!("{name}{tier}") } else { format!("{name} {place}{tier}") })
}

/// `py::function:file` (CPython Python/perf_trampoline.c).
fn python(name: &str) -> Option<String> {
    let (function, file) = name.strip_prefix("py::")?.split_once(':')?;
    let file = file.rsplit('/').next().unwrap_or(file);
    Some(format!("{function} ({file})"))
}

/// `wasm[N]::function[M]` or `wasm[N]::function[M]::name` (wasmtime's `func_symbol_name`).
fn wasm(name: &str) -> Option<String> {
    let rest = name.strip_prefix("wasm[")?;
    let (module, rest) = rest.split_once("]::function[")?;
    let (number, rest) = rest.split_once(']')?;
    Some(match rest.strip_prefix("::") {
        Some(function) if !function.is_empty() => format!("{function} (wasm)"),
        _ => format!("function {number} of module {module} (wasm)"),
    })
}

/// A class in JVM's notation with `::` or `.` before the method, or a whole signature in Java's own notation.
fn java(name: &str) -> Option<String> {
    if let Some(rest) = name.strip_prefix('L')
        && let Some((class, method)) = rest.split_once(';')
        && class.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_$".contains(&byte) || !byte.is_ascii())
    {
        let method = method.trim_start_matches([':', '.']);
        return Some(format!("{}.{}", class.replace('/', "."), before_arguments(method)));
    }
    // `returned.Type package.Class.method(arguments)`
    let (head, arguments) = name.split_once('(')?;
    let (returned, method) = head.split_once(' ')?;
    let word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._$[]<>-".contains(&byte));
    let signature = arguments.ends_with(')') && word(returned) && word(method) && method.contains('.');
    signature.then(|| method.to_owned())
}

fn before_arguments(method: &str) -> &str {
    method.split('(').next().unwrap_or(method)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(name: &str) -> String {
        String::from_utf8(pretty(name.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn v8_names_keep_their_tier() {
        assert_eq!(p("JS:*push /a/list.js:10:5"), "push /a/list.js:10:5 [turbofan]");
        assert_eq!(p("LazyCompile:~ node:fs:1:2"), "(anonymous) node:fs:1:2 [interpreted]");
        assert_eq!(p("JS:^f /a.js:1:1"), "f /a.js:1:1 [sparkplug]");
        assert_eq!(p("JS:+f /a.js:1:1"), "f /a.js:1:1 [maglev]");
        assert_eq!(p("JS:~"), "(anonymous) [interpreted]");
        assert_eq!(p("Builtin:ArrayPush"), "ArrayPush [builtin]");
    }

    #[test]
    fn java_python_and_wasm() {
        assert_eq!(p("Ljava/util/List;::add(I)V"), "java.util.List.add");
        assert_eq!(p("Ljava/util/List;.<init>(Ljava/lang/Object;)V"), "java.util.List.<init>");
        assert_eq!(p("LW;work(I)J"), "W.work");
        assert_eq!(p("boolean java.util.List.add(int, java.lang.Object)"), "java.util.List.add");
        assert_eq!(p("py::push:/usr/lib/list.py"), "push (list.py)");
        assert_eq!(p("py::<module>:<frozen x>"), "<module> (<frozen x>)");
        assert_eq!(p("wasm[0]::function[3]"), "function 3 of module 0 (wasm)");
        assert_eq!(p("wasm[0]::function[3]::<T as U>::f"), "<T as U>::f (wasm)");
    }

    #[test]
    fn other_names_stay() {
        for name in ["Interpreter", "L1", "operator new(unsigned long)", "$lists:reverse/1", "", "TRACE-1$f$2"] {
            assert_eq!(p(name), name);
        }
    }
}
