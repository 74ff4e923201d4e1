//! Parquet files that ask for hours or gigabytes in a few bytes: each is refused, or left out, with a line.
//!
//! The files are written here, byte by byte: one column, `functions`, a list of texts. Each run may take ten seconds of a
//! processor, where those before took minutes to hours, and a little memory.
#![cfg(feature = "tables")]

use std::fs;
use std::io::Write as _;
use std::process::Command;

/// A structure in Thrift's compact protocol.
#[derive(Clone, Default)]
struct Thrift {
    bytes: Vec<u8>,
    last: i16,
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn list_of(kind: u8, len: usize) -> Vec<u8> {
    [vec![0xf0 | kind], varint(len as u64)].concat()
}

impl Thrift {
    fn field(mut self, id: i16, kind: u8, value: impl AsRef<[u8]>) -> Self {
        assert!((1..=15).contains(&(id - self.last)));
        self.bytes.push(((id - self.last) as u8) << 4 | kind);
        self.bytes.extend(value.as_ref());
        self.last = id;
        self
    }

    fn int(self, id: i16, number: i64) -> Self {
        let kind = if i32::try_from(number).is_ok() { I32 } else { I64 };
        self.field(id, kind, varint((number << 1 ^ number >> 63).cast_unsigned()))
    }

    fn text(self, id: i16, text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        self.field(id, BINARY, [varint(text.len() as u64), text.to_vec()].concat())
    }

    fn inner(self, id: i16, inner: Self) -> Self {
        self.field(id, STRUCT, inner.end())
    }

    fn list(self, id: i16, elements: Vec<Self>) -> Self {
        let bytes = elements.iter().flat_map(|element| element.clone().end());
        let list: Vec<u8> = list_of(STRUCT, elements.len()).into_iter().chain(bytes).collect();
        self.field(id, LIST, list)
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

/// Lists of booleans in a list, which take seven bytes each and are claimed to have two billion elements.
fn lists_of_booleans(count: usize) -> Vec<u8> {
    let inner = list_of(1, i32::MAX as usize).repeat(count);
    [list_of(LIST, count), inner].concat()
}

/// Levels or keys: a run of one value.
fn run(len: usize, value: &[u8]) -> Vec<u8> {
    [varint((len as u64) << 1), value.to_vec()].concat()
}

fn levels(len: usize, value: u8) -> Vec<u8> {
    let run = run(len, &[value]);
    [(run.len() as u32).to_le_bytes().to_vec(), run].concat()
}

const PLAIN: i64 = 0;
const RLE: i64 = 3;
const KEYS: i64 = 8;

/// The column's chunk and what the file states about it.
#[derive(Clone)]
struct Column {
    bytes: Vec<u8>,
    values: i64,
    codec: i64,
}

impl Column {
    /// A dictionary of one text, and a page of one row with this many frames of it.
    fn new(text: &[u8], frames: usize) -> Self {
        let mut column = Self { bytes: Vec::new(), values: frames as i64, codec: 0 };
        let dictionary = [(text.len() as u32).to_le_bytes().to_vec(), text.to_vec()].concat();
        column.page(2, 7, Thrift::default().int(1, 1).int(2, PLAIN), &dictionary, dictionary.len());
        // The first frame begins the row (repetition level 0), the others continue it; all have a value.
        let repetition = [varint(2), vec![0], varint((frames as u64 - 1) << 1), vec![1]].concat();
        let repetition = [(repetition.len() as u32).to_le_bytes().to_vec(), repetition].concat();
        let keys = [vec![1], run(frames, &[0])].concat();
        let page = [repetition, levels(frames, 3), keys].concat();
        column.data_page(frames, &page, page.len());
        column
    }

    fn data_page(&mut self, values: usize, page: &[u8], unpacked: usize) {
        let header = Thrift::default().int(1, values as i64).int(2, KEYS).int(3, RLE).int(4, RLE);
        self.page(0, 5, header, page, unpacked);
    }

    fn page(&mut self, kind: i64, at: i16, inner: Thrift, page: &[u8], unpacked: usize) {
        let header = Thrift::default().int(1, kind).int(2, unpacked as i64).int(3, page.len() as i64);
        self.bytes.extend(header.inner(at, inner).end());
        self.bytes.extend(page);
    }

    /// A row group of one row in it, which begins at this many bytes of the file.
    fn group(&self, at: usize) -> Thrift {
        let len = self.bytes.len() as i64;
        let about = Thrift::default().int(1, 6).field(2, LIST, [0x15, 0]).field(3, LIST, [0x18, 1, b'f']);
        let about = about.int(4, self.codec).int(5, self.values).int(6, len).int(7, len);
        let about = about.int(9, at as i64).int(11, at as i64);
        let chunk = Thrift::default().int(2, 0).inner(3, about);
        Thrift::default().list(1, vec![chunk]).int(2, len).int(3, 1)
    }
}

/// `functions`, a list of texts, in Parquet's usual three levels.
fn schema() -> Vec<Thrift> {
    const UTF8: i64 = 0;
    const LIST_TYPE: i64 = 3;
    let element = || Thrift::default();
    vec![
        element().text(4, "schema").int(5, 1),
        element().int(3, 1).text(4, "functions").int(5, 1).int(6, LIST_TYPE),
        element().int(3, 2).text(4, "list").int(5, 1),
        element().int(1, 6).int(3, 1).text(4, "element").int(6, UTF8),
    ]
}

fn file(column: &Column, footer: Thrift) -> Vec<u8> {
    let footer = footer.end();
    let len = (footer.len() as u32).to_le_bytes();
    [b"PAR1", &column.bytes[..], &footer, &len, b"PAR1"].concat()
}

/// A file of row groups that are all in one place.
fn table(column: &Column, groups: usize) -> Vec<u8> {
    let groups = vec![column.group(4); groups];
    file(column, Thrift::default().int(1, 2).list(2, schema()).int(3, 1).list(4, groups))
}

/// The collapsed stacks, and the messages.
fn collapse(bytes: &[u8]) -> (String, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    fs::write(&path, bytes).unwrap();
    let mut command = Command::new("prlimit");
    command.arg("--cpu=10").arg(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(["collapse", "--threads", "1", "--max-memory", &(64 << 20).to_string()]).arg(&path);
    let output = command.output().unwrap();
    let [out, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.code().is_some(), "ended by {}: {said}", output.status);
    (out, said)
}

/// Nothing of it is read, and one line shows why.
fn refused(bytes: &[u8], why: &str) {
    let (out, said) = collapse(bytes);
    assert!(out.is_empty() && said.contains(why), "{out}{said}");
}

#[test]
fn the_file_that_the_others_are_changed_from_is_read() {
    let (out, said) = collapse(&table(&Column::new(b"work", 3), 1));
    assert_eq!(out, "work;work;work 1\n", "{said}");
}

#[test]
fn lists_of_booleans_that_nobody_queries_for_take_no_time() {
    let column = Column::new(b"work", 3);
    let whole = table(&column, 1);
    let footer = Thrift::default().int(1, 2).list(2, schema()).int(3, 1).list(4, vec![column.group(4)]);
    // In the description of the file they are damage: there are not this many bytes. One that has them is passed over.
    refused(
        &file(&column, footer.clone().field(15, LIST, lists_of_booleans(1_400))),
        "a list has more elements than bytes",
    );
    let five = [0x51, 1, 2, 1, 2, 1];
    assert_eq!(collapse(&file(&column, footer.clone().field(15, LIST, five))).0, "work;work;work 1\n");
    // So they are where the crate is to take another type for a number that it has, and to find them behind it.
    let hidden = Thrift::default().field(15, LIST, lists_of_booleans(1_400)).end();
    let created_by = Thrift::default().field(1, BINARY, [varint(hidden.len() as u64), hidden].concat());
    refused(&file(&column, created_by), "a field is of another type");
    // In the header of a page the crate takes no byte for any.
    let mut column = Column::new(b"work", 3);
    let len = whole.len();
    let page = column.bytes.split_off(column.bytes.len() - 40);
    let header = Thrift::default().int(1, 0).int(2, 4).int(3, 4).field(15, LIST, lists_of_booleans(1_400));
    column.bytes.extend(header.end());
    column.bytes.extend(page);
    assert!(table(&column, 1).len() > len);
    refused(&table(&column, 1), "a page cannot be read");
}

#[test]
fn values_that_no_bytes_hold_are_not_counted_one_by_one() {
    let frames = i32::MAX as usize;
    refused(&table(&Column::new(b"work", frames), 1), "more than its bytes can hold");
    // The file states little, and the page more.
    let modest = Column { values: 3, ..Column::new(b"work", frames) };
    refused(&table(&modest, 1), "its pages hold more than the 3 values");
}

#[test]
fn row_groups_share_no_bytes() {
    let column = Column::new(&[b'n'; 4_000], 3);
    let bytes = table(&column, 200);
    let fit = bytes.len() / column.bytes.len();
    assert!((2..5).contains(&fit));
    let (out, said) = collapse(&bytes);
    assert!(out.ends_with(&format!(" {fit}\n")), "{out}");
    assert!(
        said.contains(&format!("{} row groups skipped", 200 - fit)) && said.contains("its columns overlap"),
        "{said}"
    );
}

#[test]
fn a_page_unpacks_to_no_more_than_writers_pack() {
    const ZSTD: i64 = 6;
    let zeros = vec![0; 1 << 30];
    let packed = zstd::bulk::compress(&zeros, 1).unwrap();
    assert!(packed.len() < 1 << 18);
    let mut column = Column { codec: ZSTD, ..Column::new(b"work", 3) };
    column.bytes.clear();
    column.page(2, 7, Thrift::default().int(1, 1).int(2, PLAIN), &packed, zeros.len());
    refused(&table(&column, 1), "claims to unpack to 1073741824");
}

/// Whoever states less than a page unpacks to is found out before it is all in memory.
#[test]
fn a_page_unpacks_to_no_more_than_it_states() {
    const GZIP: i64 = 2;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&vec![0; 1 << 28]).unwrap();
    let packed = packed.finish().unwrap();
    let mut column = Column { codec: GZIP, ..Column::new(b"work", 3) };
    column.bytes.clear();
    column.page(2, 7, Thrift::default().int(1, 1).int(2, PLAIN), &packed, 1 << 20);
    refused(&table(&column, 1), "unpacks to more than 1048576");
}

#[test]
fn columns_are_not_nested_without_end() {
    let column = Column::new(b"work", 3);
    let mut deep = schema();
    deep[0] = Thrift::default().text(4, "schema").int(5, 2);
    deep.extend((0..200_000).map(|_| Thrift::default().int(3, 1).text(4, "n").int(5, 1)));
    deep.push(Thrift::default().int(1, 6).int(3, 1).text(4, "element"));
    let footer = Thrift::default().int(1, 2).list(2, deep).int(3, 1).list(4, vec![column.group(4)]);
    refused(&file(&column, footer), "nested more than 32 deep");
}

/// Of a text of a megabyte that a few bytes name again and again there is one copy.
#[test]
fn texts_are_not_copied_for_each_of_their_keys() {
    let text = vec![b'n'; 1 << 20];
    let named = |column: &Column| {
        let (out, said) = collapse(&table(column, 1));
        assert!(out.ends_with(" 1\n") && out.starts_with("nnn"), "{said}");
        out.len()
    };
    let frames = 3_000;
    assert_eq!(named(&Column::new(&text, 1)), (1 << 20) + 3);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    // As keys alone, and with a page behind them that has its text itself.
    let keys = Column::new(&text, frames);
    let mut both = Column { values: frames as i64 + 1, ..keys.clone() };
    let plain = [&levels(1, 1)[..], &levels(1, 3), &4_u32.to_le_bytes(), b"last"].concat();
    let header = Thrift::default().int(1, 1).int(2, PLAIN).int(3, RLE).int(4, RLE);
    both.page(0, 5, header, &plain, plain.len());
    for (column, last) in [(keys, "nnnn"), (both, "last")] {
        fs::write(&path, table(&column, 1)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.args(["report", "--format", "json", "--threads", "1", "--max-memory", &(64 << 20).to_string()]);
        let output = command.arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
        let leaf = rows.as_array().unwrap().iter().find(|row| row["self"] != 0).unwrap();
        assert!(leaf["symbol"].as_str().unwrap().starts_with(last), "{said}");
    }
}
