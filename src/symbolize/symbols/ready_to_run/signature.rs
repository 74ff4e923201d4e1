//! Formats signatures of methods and types as .NET's perf maps do.

use super::schema::{ASSEMBLY_REF, MODULE_REF, RESOLUTION_SCOPE, TYPE_DEF, TYPE_REF, TYPE_SPEC};
use super::tables::{Blob, LONGEST, Metadata, Token};

/// The maximum nesting of types in a signature. A signature with deeper nesting is damaged.
pub(super) const DEPTH: usize = 32;

/// Types that a signature encodes as a single byte. Each has this byte, its name in a signature, and its name as a type
/// argument.
const SIMPLE: &[(u8, &str, &str)] = &[
    (0x01, "void", "System.Void"),
    (0x02, "bool", "System.Boolean"),
    (0x03, "char", "System.Char"),
    (0x04, "int8", "System.SByte"),
    (0x05, "uint8", "System.Byte"),
    (0x06, "int16", "System.Int16"),
    (0x07, "uint16", "System.UInt16"),
    (0x08, "int32", "System.Int32"),
    (0x09, "uint32", "System.UInt32"),
    (0x0a, "int64", "System.Int64"),
    (0x0b, "uint64", "System.UInt64"),
    (0x0c, "float32", "System.Single"),
    (0x0d, "float64", "System.Double"),
    (0x0e, "string", "System.String"),
    (0x16, "typedref", "System.TypedReference"),
    (0x18, "native int", "System.IntPtr"),
    (0x19, "native uint", "System.UIntPtr"),
    (0x1c, "object", "System.Object"),
    (CANON, "object", "System.__Canon"),
];

const PTR: u8 = 0x0f;
const BYREF: u8 = 0x10;
const VALUE_TYPE: u8 = 0x11;
const CLASS: u8 = 0x12;
const VAR: u8 = 0x13;
const ARRAY: u8 = 0x14;
const GENERIC: u8 = 0x15;
const FUNCTION: u8 = 0x1b;
const SZ_ARRAY: u8 = 0x1d;
const METHOD_VAR: u8 = 0x1e;
const REQUIRED: u8 = 0x1f;
const OPTIONAL: u8 = 0x20;
const SENTINEL: u8 = 0x41;
const PINNED: u8 = 0x45;
/// The code of a type that occurs only in code compiled ahead of time. It stands for any reference type.
const CANON: u8 = 0x3e;
/// A prefix that occurs only in code compiled ahead of time. The type after it is defined in another file.
pub(super) const OTHER_MODULE: u8 = 0x3f;

/// Bits of the byte with a method's calling convention.
const GENERIC_METHOD: u8 = 0x10;
const HAS_THIS: u8 = 0x20;
const EXPLICIT_THIS: u8 = 0x40;
const CONVENTIONS: [&str; 6] =
    ["", "unmanaged cdecl ", "unmanaged stdcall ", "unmanaged thiscall ", "unmanaged fastcall ", "vararg "];

/// The text of a method's signature, with `name` in it as the method's name. `None` if the signature is damaged.
pub(super) fn method(metadata: &Metadata<'_>, signature: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(name.len() + 64);
    let mut writer =
        SignatureWriter { metadata, blob: Blob::new(signature, 0), spelling: Spelling::Signature, out: &mut out };
    writer.method(name, 0)?;
    Some(out)
}

/// How the name of a type is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// As in a signature: `/` before nested types, and the assembly's name before types from other assemblies.
    Signature,
    /// As the class in a method's name: `+` before nested types.
    Owner,
}

/// The name of the type in a row of the metadata. `None` if it can't be read.
pub(super) fn type_name(metadata: &Metadata<'_>, token: Token, spelling: Spelling) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    SignatureWriter { metadata, blob: Blob::new(&[], 0), spelling, out: &mut out }.type_of(token, 0)?;
    Some(out)
}

/// The name of the assembly or module to which `scope` refers; `None` if it refers to something else.
pub(super) fn scope_name<'a>(metadata: &Metadata<'a>, scope: Token) -> Option<&'a [u8]> {
    match scope.table {
        ASSEMBLY_REF => metadata.text(scope, 6),
        MODULE_REF => metadata.text(scope, 0),
        _ => None,
    }
}

/// Takes one type from `blob` and returns its spelling as a type argument. `None` if the type is damaged.
pub(super) fn argument(metadata: &Metadata<'_>, blob: &mut Blob<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut writer = SignatureWriter { metadata, blob: *blob, spelling: Spelling::Owner, out: &mut out };
    writer.next_type(0)?;
    *blob = writer.blob;
    Some(out)
}

/// The generic type of which a type signature is an instance; `None` if it isn't an instance of a generic type.
pub(super) fn generic(signature: &[u8]) -> Option<Token> {
    let mut blob = Blob::new(signature, 0);
    if blob.byte()? != GENERIC {
        return None;
    }
    // Skips the byte that tells whether the type is a class or a value type.
    blob.byte()?;
    blob.type_token()
}

/// Reads a signature and writes it as text. Methods return `None` if the signature is damaged. `depth` is the nesting
/// of types so far.
struct SignatureWriter<'b, 'o, 'm> {
    metadata: &'o Metadata<'m>,
    blob: Blob<'b>,
    spelling: Spelling,
    out: &'o mut Vec<u8>,
}

impl<'b> SignatureWriter<'b, '_, '_> {
    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Writes a method's signature: calling convention, result type, `name`, and parameter types.
    fn method(&mut self, name: &[u8], depth: usize) -> Option<()> {
        let convention = self.blob.byte()?;
        if convention & EXPLICIT_THIS != 0 {
            self.put("explicit ");
        }
        if convention & HAS_THIS != 0 {
            self.put("instance ");
        }
        match convention & 0xf {
            9 => self.put("unmanaged "),
            kind => self.put(CONVENTIONS.get(usize::from(kind))?),
        }
        if convention & GENERIC_METHOD != 0 {
            // Skips the number of type parameters, which isn't shown.
            self.blob.number()?;
        }
        let count = self.blob.number()?;
        self.next_type(depth)?;
        self.put(" ");
        self.out.extend_from_slice(name);
        self.put("(");
        for argument in 0..count {
            if argument > 0 {
                self.put(",");
            }
            // `SENTINEL` comes before the first of the variable arguments.
            if self.blob.peek()? == SENTINEL {
                self.blob.byte()?;
                self.put("...,");
            }
            self.next_type(depth)?;
        }
        self.put(")");
        Some(())
    }

    /// Writes the next type of the signature, with suffixes such as `*` or `[]`.
    fn next_type(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH || self.out.len() > LONGEST {
            return None;
        }
        let kind = self.blob.byte()?;
        if let Some((_, name, class)) = SIMPLE.iter().find(|(code, ..)| *code == kind) {
            // The name in a signature (`int32`), or that of the class (`System.Int32`).
            self.put(if self.spelling == Spelling::Signature { name } else { class });
            return Some(());
        }
        match kind {
            PTR => self.qualified("*", depth),
            BYREF => self.qualified("&", depth),
            SZ_ARRAY => self.qualified("[]", depth),
            PINNED => self.qualified(" pinned", depth),
            VALUE_TYPE | CLASS => self.named(kind, depth),
            VAR => self.variable("!"),
            METHOD_VAR => self.variable("!!"),
            ARRAY => self.array(depth),
            GENERIC => self.generic(depth),
            FUNCTION => {
                self.put("method ");
                self.method(b"*", depth + 1)
            }
            REQUIRED => self.modified(" modreq(", depth),
            OPTIONAL => self.modified(" modopt(", depth),
            OTHER_MODULE => self.type_of_other_module(depth),
            _ => None,
        }
    }

    /// Writes the name of the type in a row of the metadata: the class around it or its assembly, its namespace and its
    /// own name.
    fn type_of(&mut self, token: Token, depth: usize) -> Option<()> {
        if depth > DEPTH {
            return None;
        }
        let metadata = self.metadata;
        // `outer` is the class around the type. If the type is defined in another file (`TYPE_REF`) and in no class, it
        // is the assembly or module that defines the type.
        let (outer, name_column, namespace_column) = match token.table {
            // The row has a signature instead of a name.
            TYPE_SPEC => {
                let blob = Blob::new(metadata.blob(token, 0)?, 0);
                return SignatureWriter { metadata, blob, spelling: self.spelling, out: &mut *self.out }
                    .next_type(depth + 1);
            }
            TYPE_DEF => (metadata.enclosing(token), 1, 2),
            TYPE_REF => (metadata.coded(token, 0, RESOLUTION_SCOPE).filter(|scope| scope.row != 0), 1, 2),
            _ => return None,
        };
        match outer {
            Some(outer) if matches!(outer.table, TYPE_DEF | TYPE_REF) => {
                self.type_of(outer, depth + 1)?;
                self.put(if self.spelling == Spelling::Signature { "/" } else { "+" });
            }
            Some(scope) if self.spelling == Spelling::Signature => {
                if let Some(assembly) = scope_name(metadata, scope) {
                    self.out.extend([b"[", assembly, b"]"].concat());
                }
            }
            _ => {}
        }
        let namespace = metadata.text(token, namespace_column)?;
        if !namespace.is_empty() {
            self.out.extend([namespace, b"."].concat());
        }
        self.out.extend_from_slice(metadata.text(token, name_column)?);
        Some(())
    }

    /// Writes the next type, followed by a suffix.
    fn qualified(&mut self, suffix: &str, depth: usize) -> Option<()> {
        self.next_type(depth + 1)?;
        self.put(suffix);
        Some(())
    }

    /// Writes the class or value type to which the next token refers. `kind` tells which of the two it is.
    fn named(&mut self, kind: u8, depth: usize) -> Option<()> {
        let token = self.blob.type_token()?;
        if self.spelling == Spelling::Signature {
            self.put(if kind == VALUE_TYPE { "valuetype " } else { "class " });
        }
        self.type_of(token, depth + 1)
    }

    /// Writes a type parameter: `!` (of the class) or `!!` (of the method), and its number.
    fn variable(&mut self, mark: &str) -> Option<()> {
        let number = self.blob.number()?;
        self.put(&format!("{mark}{number}"));
        Some(())
    }

    /// Writes the next type with type arguments: the type, the number of arguments, and the arguments.
    fn generic(&mut self, depth: usize) -> Option<()> {
        let (open, close) = if self.spelling == Spelling::Signature { ("<", ">") } else { ("[", "]") };
        self.next_type(depth + 1)?;
        let count = self.blob.number()?;
        self.put(open);
        for argument in 0..count {
            if argument > 0 {
                self.put(",");
            }
            self.next_type(depth + 1)?;
        }
        self.put(close);
        Some(())
    }

    /// Writes the next type with a modifier. `with` is ` modreq(` or ` modopt(`, and the modifier's class follows in
    /// the parentheses.
    fn modified(&mut self, with: &str, depth: usize) -> Option<()> {
        let token = self.blob.type_token()?;
        self.next_type(depth + 1)?;
        self.put(with);
        self.type_of(token, depth + 1)?;
        self.put(")");
        Some(())
    }

    /// Writes the next array type: one with several dimensions, or with a dimension that doesn't start at 0.
    fn array(&mut self, depth: usize) -> Option<()> {
        self.next_type(depth + 1)?;
        let rank = self.blob.number()?;
        // The sizes and lowest indices of the dimensions. Both lists may be shorter than the number of dimensions
        // (`rank`).
        let sizes = self.numbers(Blob::number)?;
        let lows = self.numbers(Blob::signed)?;
        self.put("[");
        // An array with one dimension gets a mark (`[*]` or `[...]`). Without it, the array would look like an ordinary
        // one (`[]`), which always starts at 0.
        if self.spelling == Spelling::Owner {
            self.put(if rank == 1 { "*" } else { "" });
        } else if rank == 1 && sizes.is_empty() && lows.is_empty() {
            self.put("...");
        }
        // The limit stops damaged signatures with billions of dimensions.
        for dimension in 0..usize::try_from(rank).ok()?.min(DEPTH) {
            if dimension > 0 {
                self.put(",");
            }
            if self.spelling == Spelling::Signature {
                self.put(&bounds(sizes.get(dimension).copied(), lows.get(dimension).copied()));
            }
        }
        self.put("]");
        Some(())
    }

    /// Reads a list of numbers: their count, then each of them with `read_one`.
    fn numbers<T>(&mut self, read_one: impl Fn(&mut Blob<'b>) -> Option<T>) -> Option<Vec<T>> {
        let count = self.blob.number().filter(|&count| count as usize <= DEPTH)?;
        (0..count).map(|_| read_one(&mut self.blob)).collect()
    }

    /// Reads the number of a module, and then a type that is defined in that module. Writes the type if the module is
    /// this file (number 0). Otherwise writes `?`, because only the type's number in the other module is known.
    fn type_of_other_module(&mut self, depth: usize) -> Option<()> {
        let is_this_file = self.blob.number()? == 0;
        let len_before = self.out.len();
        self.next_type(depth + 1)?;
        if !is_this_file {
            self.out.truncate(len_before);
            self.put("?");
        }
        Some(())
    }
}

/// The text for the bounds of one array dimension, given its size and its lowest index, if the signature states them.
fn bounds(size: Option<u32>, low: Option<i32>) -> String {
    match (size, low) {
        (Some(size), None | Some(0)) => size.to_string(),
        (None, Some(low)) => format!("{low}..."),
        (Some(size), Some(low)) => format!("{low}...{}", i64::from(low) + i64::from(size) - 1),
        (None, None) => String::new(),
    }
}
