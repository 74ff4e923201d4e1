//! Formats a sample of a tracepoint, by its print format or field by field.

use super::expression::{Argument, Op, UNKNOWN, keep_low_bits};
use super::field::{Field, Place};
use super::format::{Conversion, GUID, GUID_UPPER, Piece, PrintLine, Size, TracepointFormat, UUID, UUID_UPPER};
use super::kernel::RecordedKernel;
use std::io::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Limit for widths and precisions whose value is in a sample (`%*d`).
const MAX_WIDTH: usize = 1 << 16;

/// Limit for the text of a sample, in bytes. A format may print the same data thousands of times.
const MAX_TEXT: usize = 1 << 20;

/// The raw data of a sample, with its format.
#[derive(Debug, Clone, Copy)]
pub(super) struct TracepointRecord<'a> {
    pub(super) format: &'a TracepointFormat,
    pub(super) raw: &'a [u8],
    pub(super) kernel: &'a RecordedKernel,
}

impl<'a> TracepointRecord<'a> {
    /// Appends the sample's fields as text: in the tracepoint's own print format or, like perf, as `name=value` if that
    /// can't be used.
    pub(super) fn print(&self, out: &mut Vec<u8>) {
        let mut text = Vec::new();
        let print_format = self.format.print.as_ref();
        // `None` from `print_line`: the print format can't be used for this sample.
        let is_printed = print_format.is_some_and(|line| self.print_line(line, &mut text).is_some());
        if !is_printed {
            // Drop what was printed before an argument failed.
            text.clear();
            text.extend(b"[FAILED TO PARSE]");
            for field in &self.format.fields {
                if text.len() > MAX_TEXT {
                    text.extend(b" [...]");
                    break;
                }
                put(&mut text, format_args!(" {}=", field.name));
                self.print_field(field, &mut text);
            }
        }
        out.extend(text);
    }

    /// The addresses that the text shows as names of functions: the arguments of `%ps` and `%pf` (kind `f`), and of
    /// `%pS` and `%pF` (kind `F`).
    pub(super) fn function_addresses(&self) -> Vec<u64> {
        let pieces = self.format.print.iter().flat_map(|line| &line.pieces);
        let mut addresses = Vec::new();
        for piece in pieces {
            if let Piece::Value(Conversion { kind: b'f' | b'F', .. }, argument) = piece {
                addresses.extend(self.evaluate(argument));
            }
        }
        addresses
    }

    /// Appends the record's text in the tracepoint's print format. `None` if the text would become too long, or an
    /// argument can't be computed.
    fn print_line(&self, line: &PrintLine, out: &mut Vec<u8>) -> Option<()> {
        for piece in &line.pieces {
            match piece {
                Piece::Text(text) => out.extend(text),
                Piece::Value(conversion, argument) => {
                    let start = out.len();
                    self.print_argument(conversion, argument, out)?;
                    if out.len() > MAX_TEXT {
                        return None;
                    }
                    // A line break in the data must not end the line.
                    for byte in &mut out[start..] {
                        if *byte == b'\n' {
                            *byte = b' ';
                        }
                    }
                }
            }
        }
        Some(())
    }

    /// Appends an argument as its conversion (such as `%08lx`) formats it. `None` if it can't be computed.
    fn print_argument(&self, conversion: &Conversion, argument: &Argument, out: &mut Vec<u8>) -> Option<()> {
        // `evaluate_size` returns `None` if the size can't be computed, and `Some(None)` if the conversion has none.
        let width = self.evaluate_size(&conversion.width)?;
        let precision = match &conversion.precision {
            // A point without a number after it means 0, as in C.
            Some(precision) => Some(self.evaluate_size(precision)?.unwrap_or(0)),
            None => None,
        };
        let layout = Layout { width: width.unwrap_or(0), precision, conversion };
        match conversion.kind {
            b's' => self.print_text(argument, layout, out)?,
            b'c' => layout.pad(&[self.evaluate(argument)? as u8], out),
            // The kernel's `%pM` and `%pm`: a hardware address.
            b'M' => self.print_hardware_address(argument, ":", out)?,
            b'm' => self.print_hardware_address(argument, "", out)?,
            // `%pI4`, `%pI6c` and `%pISpc`: an IPv4 address, an IPv6 address, a socket's address.
            b'4' => {
                let bytes: Vec<String> = self.array_bytes(argument)?.iter().map(u8::to_string).collect();
                put(out, format_args!("{}", bytes.join(".")));
            }
            b'6' => put(out, format_args!("{}", ipv6(self.array_bytes(argument)?)?)),
            b'S' => {
                // Addresses that are neither IPv4 nor IPv6 are left out.
                if let Some(address) = self.socket_address(argument)? {
                    put(out, format_args!("{address}"));
                }
            }
            UUID | UUID_UPPER | GUID | GUID_UPPER => {
                out.extend(uuid(self.array_bytes(argument)?.try_into().ok()?, conversion.kind).as_bytes());
            }
            // The function at an address: without the offset in it (`%ps`, `%pf`) or with it (`%pS`, `%pF`).
            b'f' | b'F' => {
                let addr = self.evaluate(argument)?;
                match self.kernel.functions.get(&addr) {
                    Some((name, offset)) => {
                        out.extend(name);
                        if conversion.kind == b'F' {
                            put(out, format_args!("+{offset:#x}"));
                        }
                    }
                    None => put(out, format_args!("{addr:#x}")),
                }
            }
            _ => layout.print_number(self.evaluate(argument)?, out),
        }
        Some(())
    }

    /// Evaluates a width or precision. `Some(None)` if the conversion has none, `None` if its argument isn't a number.
    fn evaluate_size(&self, size: &Size) -> Option<Option<usize>> {
        Some(match size {
            Size::None => None,
            Size::Fixed(size) => Some(*size),
            Size::Value(argument) => Some((self.evaluate(argument)? as usize).min(MAX_WIDTH)),
        })
    }

    /// The field with this index in [`TracepointFormat::all_fields`].
    fn field(&self, index: usize) -> Option<&'a Field> {
        self.format.all_fields.get(index)
    }

    /// A range of the raw data, shortened if it extends beyond the end.
    fn bytes(&self, offset: usize, len: usize) -> &'a [u8] {
        let start = offset.min(self.raw.len());
        let end = offset.saturating_add(len).min(self.raw.len());
        &self.raw[start..end]
    }

    /// The unsigned number of `size` bytes at an offset in the raw data; 0 if it extends beyond the end.
    fn read_number(&self, offset: usize, size: usize) -> u64 {
        let bytes = self.bytes(offset, size);
        if bytes.len() < size {
            return 0;
        }
        let endian = self.kernel.endian;
        match *bytes {
            [a] => a.into(),
            [a, b] => endian.u16([a, b]).into(),
            [a, b, c, d] => endian.u32([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => endian.u64([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }

    /// The data of a field, whether they are in the field or elsewhere in the raw data.
    fn data(&self, field: &Field) -> &'a [u8] {
        let (offset, len) = self.data_extent(field);
        self.bytes(offset, len)
    }

    /// Offset and length in bytes of a field's data in the raw data.
    fn data_extent(&self, field: &Field) -> (usize, usize) {
        // A field whose data is elsewhere contains the offset and the length of that data. For other fields, these two
        // numbers mean nothing and aren't used.
        let word = self.read_number(field.offset, field.size) as usize;
        let (offset, len) = (word & 0xffff, word >> 16 & 0xffff);
        match field.place {
            // An inline field of size 0 extends to the end of the raw data.
            Place::Inline if field.size == 0 => (field.offset, self.raw.len().saturating_sub(field.offset)),
            Place::Inline => (field.offset, field.size),
            Place::AtOffset => (offset, len),
            Place::AfterField => (field.offset.saturating_add(field.size).saturating_add(offset), len),
        }
    }

    /// Computes the value of an argument. `None` if it isn't a number, or contains a division by zero.
    fn evaluate(&self, argument: &Argument) -> Option<u64> {
        match argument {
            Argument::Number(number) => Some(*number),
            // The recording lacks the value of this constant of the kernel. Like perf, takes it for 0 (`UNKNOWN`).
            Argument::Unknown => Some(UNKNOWN),
            Argument::Field(field) => {
                let field = self.field(*field)?;
                // An array isn't a number.
                (!field.is_array).then(|| self.read_number(field.offset, field.size))
            }
            Argument::Element(field, index) => {
                let field = self.field(*field)?;
                let (start, _) = self.data_extent(field);
                let distance = (self.evaluate(index)? as usize).checked_mul(field.element_size)?;
                Some(self.read_number(start.checked_add(distance)?, field.element_size))
            }
            Argument::Cast(bits, operand) => Some(keep_low_bits(self.evaluate(operand)?, *bits)),
            // Unary operators ignore the left operand, except that `-` is computed as 0 minus the operand.
            Argument::Unary(op, operand) => op.apply(0, self.evaluate(operand)?),
            Argument::Binary(op @ (Op::BothTrue | Op::AnyTrue), left, right) => {
                let left = self.evaluate(left)?;
                // A left operand that is true decides `||`, one that is false decides `&&`. Then the right operand
                // isn't evaluated, as in C.
                let decides = (left != 0) == (*op == Op::AnyTrue);
                let result = if decides { left } else { self.evaluate(right)? };
                Some((result != 0).into())
            }
            Argument::Binary(op, left, right) => op.apply(self.evaluate(left)?, self.evaluate(right)?),
            Argument::Choice(condition, then, otherwise) => {
                if self.evaluate(condition)? != 0 {
                    self.evaluate(then)
                } else {
                    self.evaluate(otherwise)
                }
            }
            Argument::DataLen(field) => {
                let (_, len) = self.data_extent(self.field(*field)?);
                Some(len as u64)
            }
            _ => None,
        }
    }

    /// Appends an argument as `%s` prints it. `None` if it can't be printed as a text.
    fn print_text(&self, argument: &Argument, layout: Layout<'_>, out: &mut Vec<u8>) -> Option<()> {
        match argument {
            Argument::Text(text) => layout.print_text(text, out),
            // A number instead of a text only occurs as the null pointer in `"%.*s", REC->len, REC->len ? … : NULL`.
            // The precision (`REC->len`) is 0 whenever the null pointer is chosen, so nothing is printed.
            Argument::Number(number) => layout.print_text(number.to_string().as_bytes(), out),
            Argument::Field(field) => {
                let field = self.field(*field)?;
                if field.is_array {
                    layout.print_text(cut_at_nul(self.data(field)), out);
                } else if field.size as u64 == self.kernel.long_size {
                    // The field is a pointer to a string in the kernel, which the recording lists with its address.
                    let addr = self.read_number(field.offset, field.size);
                    match self.kernel.printk.get(&addr) {
                        Some(text) => out.extend(text),
                        None => put(out, format_args!("{addr:x}")),
                    }
                } else {
                    layout.print_text(cut_at_nul(self.bytes(field.offset, field.size)), out);
                }
            }
            Argument::Data(field) => layout.print_text(cut_at_nul(self.data(self.field(*field)?)), out),
            // A cast doesn't change a text. Its number of bits only matters for numbers.
            Argument::Cast(_, operand) => self.print_text(operand, layout, out)?,
            Argument::Choice(condition, then, otherwise) => {
                let chosen = if self.evaluate(condition)? != 0 { then } else { otherwise };
                self.print_text(chosen, layout, out)?;
            }
            Argument::Flags { value, separator, names } => self.print_flags(value, separator, names, layout, out)?,
            Argument::Symbol { value, names } => {
                let value = self.evaluate(value)?;
                match names.iter().find(|(other, _)| *other == value) {
                    Some((_, name)) => layout.print_text(name, out),
                    // As in perf, the width of the conversion only applies to names.
                    None => put(out, format_args!("{value:#x}")),
                }
            }
            Argument::Hex { array, len, separator } => {
                let len = self.evaluate(len)? as usize;
                for (index, byte) in self.array_bytes(array)?.iter().take(len).enumerate() {
                    if index > 0 {
                        out.extend(*separator);
                    }
                    put(out, format_args!("{byte:02x}"));
                }
            }
            Argument::Numbers { array, count, size } => self.print_numbers(array, count, size, out)?,
            Argument::Bits(field) => self.print_bitmask(self.field(*field)?, out),
            Argument::Cpus(field) => self.print_cpus(self.field(*field)?, out),
            _ => return None,
        }
        Some(())
    }

    /// Appends a hardware address: its bytes in hexadecimal, with `separator` between them. `None` if the argument
    /// isn't an array.
    fn print_hardware_address(&self, argument: &Argument, separator: &str, out: &mut Vec<u8>) -> Option<()> {
        let bytes: Vec<String> = self.array_bytes(argument)?.iter().map(|byte| format!("{byte:02x}")).collect();
        put(out, format_args!("{}", bytes.join(separator)));
        Some(())
    }

    /// Parses a `struct sockaddr` that holds an IPv4 or IPv6 address. `Some(None)` for other kinds of addresses, and
    /// `None` if the argument isn't an array or is too short.
    fn socket_address(&self, argument: &Argument) -> Option<Option<SocketAddr>> {
        const AF_INET: u64 = 2;
        const AF_INET6: u64 = 10;
        let bytes = self.array_bytes(argument)?;
        // A record with the array as its raw data, to read numbers of the kernel's byte order from it.
        let in_bytes = Self { raw: bytes, ..*self };
        // Port and address are in network byte order, only the family is in the kernel's.
        let port = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]);
        let addr: IpAddr = match in_bytes.read_number(0, 2) {
            AF_INET => <[u8; 4]>::try_from(bytes.get(4..8)?).ok()?.into(),
            AF_INET6 => ipv6(bytes.get(8..)?)?.into(),
            _ => return Some(None),
        };
        Some(Some(SocketAddr::new(addr, port)))
    }

    /// The data of an argument that is an array; `None` if it isn't one.
    fn array_bytes(&self, argument: &Argument) -> Option<&'a [u8]> {
        match argument {
            Argument::Field(field) | Argument::Data(field) => Some(self.data(self.field(*field)?)),
            Argument::Cast(_, operand) => self.array_bytes(operand),
            _ => None,
        }
    }

    /// Appends the names of the flags that are set in `value`, and the other bits as a number. The rules are those of
    /// libtraceevent: only flags that are positive as signed numbers are tested, and the first negative one names the
    /// value 0. `separator` separates the names.
    fn print_flags(
        &self,
        value: &Argument,
        separator: &[u8],
        names: &[(u64, Vec<u8>)],
        layout: Layout<'_>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let mut value = self.evaluate(value)?;
        let mut is_first = true;
        for (flag, name) in names {
            // What is left of the value is 0, either from the start or because all its bits have been named. The first
            // negative flag is the name of 0.
            if value == 0 && flag.cast_signed() < 0 {
                layout.print_text(name, out);
                break;
            }
            if flag.cast_signed() > 0 && value & flag == *flag {
                if !is_first {
                    out.extend(separator);
                }
                is_first = false;
                layout.print_text(name, out);
                value &= !flag;
            }
        }
        if value != 0 {
            if !is_first {
                out.extend(separator);
            }
            put(out, format_args!("{value:#x}"));
        }
        Some(())
    }

    /// Appends the first `count` numbers of an array, which have `size` bytes each, such as `{0x1,0x2}`.
    fn print_numbers(&self, array: &Argument, count: &Argument, size: &Argument, out: &mut Vec<u8>) -> Option<()> {
        let (count, size) = (self.evaluate(count)? as usize, self.evaluate(size)? as usize);
        if !matches!(size, 1 | 2 | 4 | 8) {
            return None;
        }
        let array = self.array_bytes(array)?;
        // A record with the array as its raw data, to read numbers from it.
        let in_array = Self { raw: array, ..*self };
        out.push(b'{');
        for index in 0..count.min(array.len() / size) {
            if index > 0 {
                out.push(b',');
            }
            put(out, format_args!("{:#x}", in_array.read_number(index * size, size)));
        }
        out.push(b'}');
        Some(())
    }

    /// Appends a field's data as a bit mask in hexadecimal, in 32-bit words, the highest first.
    fn print_bitmask(&self, field: &Field, out: &mut Vec<u8>) {
        let data = self.data(field);
        // A record with the field's data as its raw data, to read numbers from them.
        let in_data = Self { raw: data, ..*self };
        let words: Vec<String> =
            (0..data.len() / 4).rev().map(|index| format!("{:08x}", in_data.read_number(index * 4, 4))).collect();
        out.extend(words.join(",").as_bytes());
    }

    /// Appends the numbers of the bits that are set in a field's data, a set of CPUs, such as `0-2,5`.
    fn print_cpus(&self, field: &Field, out: &mut Vec<u8>) {
        let data = self.data(field);
        // A record with the field's data as its raw data, to read numbers from them.
        let in_data = Self { raw: data, ..*self };
        let word_len = if self.kernel.long_size == 4 { 4 } else { 8 };
        let is_set = |cpu: usize| {
            // The offset of the word that contains the bit. Bits are numbered within the kernel's words, whose byte
            // order matters. Only a damaged sample ends with a part of a word.
            let start = cpu / (word_len * 8) * word_len;
            let bit = cpu - start * 8;
            match data.get(start..start + word_len) {
                Some(_) => in_data.read_number(start, word_len) >> bit & 1 != 0,
                None => data[start + bit / 8] >> (bit % 8) & 1 != 0,
            }
        };
        let (mut cpu, cpu_count, mut is_first) = (0, data.len() * 8, true);
        while cpu < cpu_count {
            if !is_set(cpu) {
                cpu += 1;
                continue;
            }
            let first = cpu;
            while cpu < cpu_count && is_set(cpu) {
                cpu += 1;
            }
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            put(out, format_args!("{first}"));
            // `cpu` is the first CPU that isn't in the set, so `cpu - 1` is the last one of the range. A single CPU is
            // printed without a range.
            if cpu - first > 1 {
                put(out, format_args!("-{}", cpu - 1));
            }
        }
    }

    /// Appends the value of a field in a default format, as perf does if it can't use the print format.
    fn print_field(&self, field: &Field, out: &mut Vec<u8>) {
        if field.is_array {
            let data = self.data(field);
            let text = cut_at_nul(data);
            let is_printable =
                text.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c));
            if field.is_text && is_printable {
                out.extend(text);
                return;
            }
            out.extend(b"ARRAY[");
            for (index, byte) in data.iter().enumerate() {
                if index > 0 {
                    out.extend(b", ");
                }
                put(out, format_args!("{byte:02x}"));
            }
            out.push(b']');
            return;
        }
        let value = self.read_number(field.offset, field.size);
        // Like perf, print a `long` in hexadecimal unless it is signed and has eight bytes.
        let is_hexadecimal = field.is_pointer || field.is_long && (!field.is_signed || field.size == 4);
        if is_hexadecimal {
            put(out, format_args!("{value:#x}"));
        } else if !field.is_signed {
            put(out, format_args!("{value}"));
        } else {
            match field.size {
                4 => put(out, format_args!("{}", (value as u32).cast_signed())),
                // perf prints numbers of two bytes in at least two columns.
                2 => put(out, format_args!("{:2}", (value as u16).cast_signed())),
                1 => put(out, format_args!("{}", (value as u8).cast_signed())),
                _ => put(out, format_args!("{}", value.cast_signed())),
            }
        }
    }
}

/// A conversion, with the values of its width and precision.
#[derive(Debug, Clone, Copy)]
struct Layout<'c> {
    /// The minimum number of columns.
    width: usize,
    /// For numbers, the minimum number of digits; for texts, the maximum number of bytes.
    precision: Option<usize>,
    conversion: &'c Conversion,
}

impl Layout<'_> {
    /// Appends a text, cut off after as many bytes as the precision says.
    fn print_text(&self, text: &[u8], out: &mut Vec<u8>) {
        self.pad(&text[..text.len().min(self.precision.unwrap_or(usize::MAX))], out);
    }

    /// Appends a text, with blanks to the left or right up to the width of the conversion.
    fn pad(&self, text: &[u8], out: &mut Vec<u8>) {
        let blanks = std::iter::repeat_n(b' ', self.width.saturating_sub(text.len()));
        if self.conversion.left {
            out.extend(text);
            out.extend(blanks);
        } else {
            out.extend(blanks);
            out.extend(text);
        }
    }

    /// Appends a number like C's `printf`.
    fn print_number(&self, number: u64, out: &mut Vec<u8>) {
        let Conversion { bits, kind, alternate, zeros, left, plus, space, .. } = *self.conversion;
        let number = keep_low_bits(number, bits);
        let mut sign = "";
        let mut digits = match kind {
            b'd' | b'i' => {
                // Extend the sign bit of the shorter number to 64 bits.
                let shift = 64 - bits.min(64);
                let signed = (number << shift).cast_signed() >> shift;
                sign = match signed {
                    ..0 => "-",
                    _ if plus => "+",
                    _ if space => " ",
                    _ => "",
                };
                signed.unsigned_abs().to_string()
            }
            b'x' | b'X' | b'p' => {
                // The flag `#` asks for the prefix. Pointers always have it.
                if alternate && number != 0 || kind == b'p' {
                    sign = if kind == b'X' { "0X" } else { "0x" };
                }
                if kind == b'X' { format!("{number:X}") } else { format!("{number:x}") }
            }
            b'o' => format!("{}{number:o}", if alternate && number != 0 { "0" } else { "" }),
            _ => number.to_string(),
        };
        // glibc prints a null pointer as `(nil)`.
        if kind == b'p' && number == 0 {
            return self.pad(b"(nil)", out);
        }
        if let Some(precision) = self.precision {
            if precision == 0 && number == 0 {
                digits.clear();
            }
            digits.insert_str(0, &"0".repeat(precision.saturating_sub(digits.len())));
        // As in C, a precision or left alignment overrides the flag for zeros.
        } else if zeros && !left {
            digits.insert_str(0, &"0".repeat(self.width.saturating_sub(digits.len() + sign.len())));
        }
        self.pad(format!("{sign}{digits}").as_bytes(), out);
    }
}

/// The address in the first 16 bytes; `None` if there are fewer.
fn ipv6(bytes: &[u8]) -> Option<Ipv6Addr> {
    bytes.first_chunk::<16>().map(|bytes| Ipv6Addr::from(*bytes))
}

/// A UUID as text. `kind` is the kind of the conversion, which decides byte order and case.
fn uuid(bytes: [u8; 16], kind: u8) -> String {
    let mut bytes = bytes;
    if matches!(kind, GUID | GUID_UPPER) {
        // The first three numbers of a GUID are stored with their lowest byte first.
        for number in [0..4, 4..6, 6..8] {
            bytes[number].reverse();
        }
    }
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text += &format!("{byte:02x}");
    }
    if matches!(kind, UUID_UPPER | GUID_UPPER) { text.to_uppercase() } else { text }
}

/// A text up to its first NUL.
fn cut_at_nul(bytes: &[u8]) -> &[u8] {
    memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end])
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a sample with this raw data.
    fn print(format: &str, raw: &[u8]) -> String {
        let kernel = RecordedKernel { long_size: 8, ..RecordedKernel::default() };
        let (_, format) = TracepointFormat::parse(format, kernel.long_size).unwrap();
        let mut out = Vec::new();
        TracepointRecord { format: &format, raw, kernel: &kernel }.print(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn fields_may_claim_to_be_anywhere() {
        let most = usize::MAX;
        for place in ["__data_loc char[] name", "__rel_loc char[] name", "char name[9]", "u64 name"] {
            for (offset, size) in [(most, most), (most, 4), (4, most), (0, 4), (most - 4, 8)] {
                let fields = format!("ID: 1\n\tfield:{place}; offset:{offset}; size:{size}; signed:0;\n");
                for line in ["\"%s\", REC->name", "\"%s\", __get_str(name)", "\"%d\", REC->name[18446744073709551615]"]
                {
                    print(&format!("{fields}print fmt: {line}"), &[0xff; 16]);
                }
            }
        }
    }

    #[test]
    fn the_text_of_a_sample_is_bounded() {
        let field = "\tfield:char name[]; offset:0; size:0; signed:0;\n";
        let (raw, times) = (vec![b'a'; 60_000], 5_000);
        let list = ", REC->name".repeat(times);
        let line = format!("ID: 1\n{field}print fmt: \"{}\"{list}", "%s".repeat(times));
        assert_eq!(print(&line, &raw), format!("[FAILED TO PARSE] name={}", "a".repeat(raw.len())));
        let text = print(&format!("ID: 1\n{}", field.repeat(times)), &raw);
        assert!(text.ends_with("a [...]") && text.len() < MAX_TEXT + 2 * raw.len(), "{} bytes", text.len());
    }
}
