//! A frame of a stack: address, symbol, offset, object.

use crate::bytes::digits::{decimal, hex};
use crate::model::backing::{Backing, base_name};

/// The parts of a frame as printed. All borrow from the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The address as printed; whether it is absolute depends on perf's version and the object.
    pub addr: u64,
    /// The symbol without its offset; `[unknown]` if perf had none.
    pub symbol: &'a [u8],
    /// The offset behind the symbol, if it was printed.
    pub offset: Option<u64>,
    /// The object, without its parentheses; `None` if it was not printed.
    pub dso: Option<&'a [u8]>,
    /// True if perf marked it as expanded into its caller.
    pub inlined: bool,
}

/// perf's text for an unknown symbol or object.
pub const UNKNOWN: &[u8] = b"[unknown]";

impl<'a> Frame<'a> {
    /// Takes a frame line apart (leading white space is allowed, the line's end is cut off before). `None` if the line
    /// is not a frame.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.trim_ascii_start();
        let (addr, rest) = address(line)?;
        let rest = rest.strip_prefix(b" ")?;
        let (rest, inlined) = match rest.strip_suffix(b" (inlined)") {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let (symbol, dso) = split_dso(rest);
        let (symbol, offset) = split_offset(symbol);
        Some(Self { addr, symbol, offset, dso, inlined })
    }

    /// The usual form of a frame without a name, `address [unknown] (object)`, and nothing else.
    pub(super) fn parse_unknown(line: &'a [u8]) -> Option<Self> {
        let (addr, rest) = address(line)?;
        let dso = rest.strip_prefix(b" [unknown] (")?.strip_suffix(b")")?;
        Some(Self { addr, symbol: UNKNOWN, offset: None, dso: Some(dso), inlined: false })
    }
}

/// The hexadecimal number at the start, and what follows it.
pub(super) fn address(line: &[u8]) -> Option<(u64, &[u8])> {
    let len = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let addr = hex(&line[..len]).filter(|_| len <= 16)?;
    Some((addr, &line[len..]))
}

/// `symbol (object)` in two. The object is the last parenthesis that opens behind a space and is balanced to the
/// line's end, so that `(/memfd:x (deleted))` stays whole and `f(int) (/lib/x.so)` is cut right.
fn split_dso(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    if !text.ends_with(b")") {
        return (text, None);
    }
    let mut depth = 0usize;
    for (at, &byte) in text.iter().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            if at > 0 && text[at - 1] == b' ' {
                return (&text[..at - 1], Some(&text[at + 1..text.len() - 1]));
            }
            return (text, None);
        }
    }
    (text, None)
}

/// `symbol+0x1f` in two.
fn split_offset(symbol: &[u8]) -> (&[u8], Option<u64>) {
    let plus = memchr::memmem::rfind(symbol, b"+0x");
    let offset = plus.and_then(|plus| match address(&symbol[plus + 3..]) {
        Some((offset, [])) => Some((&symbol[..plus], Some(offset))),
        _ => None,
    });
    offset.unwrap_or((symbol, None))
}

/// Places where names of JIT code can be missing, reported by the object that perf printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Memory that no file backs, or nothing known: the address is absolute. The process, if the object names it.
    Anonymous(Option<i32>),
    /// A file that JIT compilers write code through, or an image of JIT code: the address may be relative to it.
    FileBacked,
    /// A file that was deleted or lies where programs share memory: of a JIT compiler, or a library. The address may be
    /// relative to it.
    MaybeJit,
    /// Anything else.
    Elsewhere,
}

impl Place {
    /// Reports it from the object's name; `None` is an object that was not printed.
    pub fn of(dso: Option<&[u8]>) -> Self {
        let Some(dso) = dso else { return Self::Anonymous(None) };
        let backing = Backing::of(dso);
        if dso == UNKNOWN || dso == b"anon" || dso.starts_with(b"[JIT] ") || backing.is_private_memory() {
            return Self::Anonymous(dso.strip_prefix(b"[JIT] tid ").and_then(pid));
        }
        if let Some(rest) = dso.strip_prefix(b"/tmp/perf-").and_then(|rest| rest.strip_suffix(b".map")) {
            return Self::Anonymous(pid(rest));
        }
        let base = base_name(dso);
        let image = base.starts_with(b"jitted-") && base.ends_with(b".so");
        match () {
            () if image || backing.is_shared_memory() => Self::FileBacked,
            () if backing.is_likely_jit_file() => Self::MaybeJit,
            () => Self::Elsewhere,
        }
    }
}

fn pid(digits: &[u8]) -> Option<i32> {
    decimal(digits).and_then(|pid| i32::try_from(pid).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::backing::tests::those;

    type Parts<S> = (u64, S, Option<u64>, Option<S>, bool);

    fn frame(line: &str) -> Parts<String> {
        let frame = Frame::parse(line.as_bytes()).unwrap_or_else(|| panic!("no frame: {line}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (frame.addr, text(frame.symbol), frame.offset, frame.dso.map(text), frame.inlined)
    }

    #[test]
    fn frames_of_every_shape() {
        let cases: [(&str, Parts<&str>); 8] = [
            ("\t    7f1 main+0x1a (/usr/bin/x)", (0x7f1, "main", Some(0x1a), Some("/usr/bin/x"), false)),
            ("\t    7f1 [unknown] ([unknown])", (0x7f1, "[unknown]", None, Some("[unknown]"), false)),
            (
                "\t 7f1 f(int, (a)) (/memfd:jit (deleted))",
                (0x7f1, "f(int, (a))", None, Some("/memfd:jit (deleted)"), false),
            ),
            (
                "7f1 void W.quick(java.util.List, int)+0x379 (/tmp/perf-1.map)",
                (0x7f1, "void W.quick(java.util.List, int)", Some(0x379), Some("/tmp/perf-1.map"), false),
            ),
            ("\t 7f1 std::vec (inlined)", (0x7f1, "std::vec", None, None, true)),
            ("\t 7f1 a+0x1", (0x7f1, "a", Some(1), None, false)),
            (
                "\t ffffffff8168bb05 mod+0x85 ([kernel.kallsyms])",
                (0xffff_ffff_8168_bb05, "mod", Some(0x85), Some("[kernel.kallsyms]"), false),
            ),
            (
                "\t 7f1 C::operator()(int) const (/lib/x.so)",
                (0x7f1, "C::operator()(int) const", None, Some("/lib/x.so"), false),
            ),
        ];
        for (line, (addr, symbol, offset, dso, inlined)) in cases {
            assert_eq!(frame(line), (addr, symbol.into(), offset, dso.map(str::to_owned), inlined), "{line}");
        }
    }

    #[test]
    fn noise_is_not_a_frame() {
        for line in ["", "\t", "\t xyz main (a)", "\t 12345678901234567 a (b)", "  file.c:12"] {
            assert_eq!(Frame::parse(line.as_bytes()), None, "{line}");
        }
        assert_eq!(frame("\t 7f1 ) (b").1, ") (b");
    }

    #[test]
    fn every_sort_of_object_has_its_place() {
        let anonymous = [
            "//anon",
            "[anon:JIT code]",
            "/anon_hugepage",
            "/anon_hugepage (deleted)",
            "[heap]",
            "[stack]",
            "[stack:77]",
            "/tmp/perf-77.map",
            "anon",
            "[unknown]",
            "[JIT] tid 77",
        ];
        assert_eq!(those(|path| matches!(Place::of(Some(path)), Place::Anonymous(_))), anonymous);
        let file_backed = [
            "[anon_shmem:JIT code]",
            "/dev/zero",
            "/dev/zero (deleted)",
            "/memfd:doublemapper (deleted)",
            "/SYSV00000000 (deleted)",
            "/dev/shm/code (deleted)",
            "/dev/ashmem/dalvik-jit-code-cache (deleted)",
            "/tmp/#77 (deleted)",
            "/run/jitted-77.so",
            "/run/jitted-77-3.so",
        ];
        assert_eq!(those(|path| Place::of(Some(path)) == Place::FileBacked), file_backed);
        let maybe = ["/usr/lib/libc.so.6 (deleted)", "/dev/shm/code"];
        assert_eq!(those(|path| Place::of(Some(path)) == Place::MaybeJit), maybe);
    }

    #[test]
    fn places_of_jit_code() {
        assert_eq!(Place::of(Some(b"/tmp/perf-77.map")), Place::Anonymous(Some(77)));
        assert_eq!(Place::of(Some(b"[JIT] tid 78")), Place::Anonymous(Some(78)));
        assert_eq!(Place::of(Some(b"//anon")), Place::Anonymous(None));
        assert_eq!(Place::of(None), Place::Anonymous(None));
        assert_eq!(Place::of(Some(b"/memfd:doublemapper (deleted)")), Place::FileBacked);
        assert_eq!(Place::of(Some(b"/run/jitted-77-3.so")), Place::FileBacked);
        assert_eq!(Place::of(Some(b"/usr/bin/node")), Place::Elsewhere);
    }
}
