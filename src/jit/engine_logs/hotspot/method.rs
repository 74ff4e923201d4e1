//! Spells method names like HotSpot's perf map (`Method::external_name` in share/oops/method.cpp).

/// A method, named as in its class file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Method<'a> {
    /// The class, with dots: `java.util.Map$Entry`.
    pub(super) class: &'a [u8],
    pub(super) name: &'a [u8],
    /// Descriptor of arguments and result: `(ILjava/lang/String;)V`.
    pub(super) descriptor: &'a [u8],
}

impl<'a> Method<'a> {
    /// Parses `java.lang.String charAt (I)C`, a name in a compilation log. Names from compilers of other languages may
    /// contain blanks.
    pub(super) fn from_words(text: &'a [u8]) -> Option<Self> {
        let (class, rest) = split(text, memchr::memchr(b' ', text)?);
        let (name, descriptor) = split(rest, memchr::memrchr(b' ', rest)?);
        Self { class, name, descriptor }.validate()
    }

    /// Parses `java.lang.String.charAt(I)C`, a name in a code list.
    pub(super) fn from_joined(text: &'a [u8]) -> Option<Self> {
        let (path, descriptor) = text.split_at(memchr::memrchr(b'(', text)?);
        let (class, name) = split(path, memchr::memrchr(b'.', path)?);
        Self { class, name, descriptor }.validate()
    }

    /// Returns the method, or `None` if a part of its name is missing.
    fn validate(self) -> Option<Self> {
        (!self.class.is_empty() && !self.name.is_empty() && self.descriptor.starts_with(b"(")).then_some(self)
    }

    /// Spells the method as `char java.lang.String.charAt(int)`. A descriptor that can't be parsed is appended
    /// unchanged.
    pub(super) fn spell(self) -> Vec<u8> {
        let Some((arguments, result)) = parse_descriptor(self.descriptor) else {
            return [self.class, b".", self.name, self.descriptor].concat();
        };
        [&result, &b" "[..], self.class, b".", self.name, b"(", &arguments.join(&b", "[..]), b")"].concat()
    }
}

/// The suffix that names the compiler of a method's code. Empty for wrappers of native functions, which no compiler
/// made.
pub(super) fn compiler_mark(compiler: &[u8], level: Option<u32>) -> &'static [u8] {
    match (compiler, level) {
        (b"c1" | b"C1", _) => b" [c1]",
        (b"c2" | b"C2", _) => b" [c2]",
        (b"jvmci" | b"JVMCI", _) => b" [jvmci]",
        // Code lists only have the level (`CompLevel` in share/compiler/compilerDefinitions.hpp).
        (_, Some(1..=3)) => b" [c1]",
        (_, Some(4)) => b" [c2]",
        _ => b"",
    }
}

/// The text before and after the byte at `index`.
fn split(text: &[u8], index: usize) -> (&[u8], &[u8]) {
    (&text[..index], &text[index + 1..])
}

/// Parses a method's descriptor such as `(ILjava/lang/String;)V`. Returns its argument types and its result type in
/// Java's spelling; `None` if the descriptor is damaged.
fn parse_descriptor(descriptor: &[u8]) -> Option<(Vec<Vec<u8>>, Vec<u8>)> {
    let mut rest = descriptor.strip_prefix(b"(")?;
    let mut arguments = Vec::new();
    while !rest.starts_with(b")") {
        arguments.push(next_type(&mut rest)?);
    }
    rest = &rest[1..];
    let result = next_type(&mut rest)?;
    rest.is_empty().then_some((arguments, result))
}

/// Converts the name of a class from the compilation log to Java's spelling. Only arrays differ: in the log, they are
/// descriptors with dots, such as `[Ljava.lang.String;` for `java.lang.String[]`.
pub(super) fn spell_class(name: &[u8]) -> Vec<u8> {
    let mut rest = name;
    if name.starts_with(b"[")
        && let Some(array) = next_type(&mut rest)
        && rest.is_empty()
    {
        return array;
    }
    name.to_vec()
}

/// Removes the first type of a descriptor, and returns it in Java's spelling; `None` if the descriptor is damaged.
fn next_type(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let dimensions = rest.iter().take_while(|&&byte| byte == b'[').count();
    let (&first, after) = rest[dimensions..].split_first()?;
    let plain: &[u8] = match first {
        b'B' => b"byte",
        b'C' => b"char",
        b'D' => b"double",
        b'F' => b"float",
        b'I' => b"int",
        b'J' => b"long",
        b'S' => b"short",
        b'Z' => b"boolean",
        b'V' => b"void",
        b'L' => &after[..memchr::memchr(b';', after)?],
        _ => return None,
    };
    *rest = if first == b'L' { &after[plain.len() + 1..] } else { after };
    let dotted = plain.iter().map(|&byte| if byte == b'/' { b'.' } else { byte });
    Some(dotted.chain(b"[]".repeat(dimensions)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Option<String> {
        Some(String::from_utf8(Method::from_words(text.as_bytes())?.spell()).unwrap())
    }

    fn joined(text: &str) -> Option<String> {
        Some(String::from_utf8(Method::from_joined(text.as_bytes())?.spell()).unwrap())
    }

    #[test]
    fn methods_are_spelled_as_in_a_perf_map() {
        let all = "double[][] W.mul(double[][], int, java.util.Map$Entry[], boolean, byte, char, float, long, short)";
        assert_eq!(words("W mul ([[DI[Ljava/util/Map$Entry;ZBCFJS)[[D").unwrap(), all);
        assert_eq!(joined("W.mul([[DI[Ljava/util/Map$Entry;ZBCFJS)[[D").unwrap(), all);
        assert_eq!(words("java.lang.Object <init> ()V").unwrap(), "void java.lang.Object.<init>()");
        assert_eq!(joined("java.lang.Object.<init>()V").unwrap(), "void java.lang.Object.<init>()");
        let lambda = "boolean Pattern$$Lambda/0x800000027.is(int)";
        assert_eq!(words("Pattern$$Lambda/0x800000027 is (I)Z").unwrap(), lambda);
        assert_eq!(joined("Pattern$$Lambda/0x800000027.is(I)Z").unwrap(), lambda);
        assert_eq!(words("KTest adds two (numbers) ()V").unwrap(), "void KTest.adds two (numbers)()");
    }

    #[test]
    fn a_false_descriptor_is_reported_as_it_is() {
        for odd in ["(Q)V", "(I", "(I)", "(Ljava/lang/String)V", "(I)VV", "([)V"] {
            assert_eq!(words(&format!("A f {odd}")).unwrap(), format!("A.f{odd}"));
        }
        for none in ["", "A", "A f", "A f I", " f ()V", "A  ()V"] {
            assert_eq!(words(none), None, "{none}");
        }
        assert_eq!(joined("f()V"), None);
    }

    #[test]
    fn the_compiler_follows() {
        assert_eq!(compiler_mark(b"c1", Some(3)), b" [c1]");
        assert_eq!(compiler_mark(b"jvmci", Some(4)), b" [jvmci]");
        assert_eq!(compiler_mark(b"", Some(4)), b" [c2]");
        assert_eq!(compiler_mark(b"", Some(0)), b"");
        assert_eq!(compiler_mark(b"", None), b"");
    }
}
