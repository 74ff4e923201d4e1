//! Formats that are read and written: the shapes of the others as our writers spell them, and as nobody does who means
//! well.

use super::*;
use std::io::Write as _;

/// Formats that are read and written, but for trace events, whose shapes are written by hand.
const WRITTEN_FORMATS: &[&str] = &["firefox", "speedscope", "pprof", "otlp", "callgrind", "folded"];

#[test]
fn every_format_that_is_read_and_written_is_listed() {
    for format in formats().iter().filter(|format| format.is_read && format.is_written) {
        let is_listed = format.name == "chrome" || WRITTEN_FORMATS.contains(&&*format.name);
        assert!(is_listed, "{} is not in WRITTEN_FORMATS", format.name);
    }
}

/// A shape in another format, as it is written.
fn in_format(directory: &Path, shape: &Shape, format: &'static str) -> Shape {
    fs::write(directory.join("from"), &shape.bytes).unwrap();
    let output = jitgraft(directory, 1 << 30, &["export", "--to", format, "-i", "from", "-o", "to"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = fs::read(directory.join("to")).unwrap();
    let unpacked = match format {
        "pprof" => gunzipped(&bytes),
        _ => bytes.len() as u64,
    };
    Shape { format, bytes, unpacked, ..shape.clone() }
}

fn gunzipped(gzip: &[u8]) -> u64 {
    std::io::copy(&mut flate2::read::MultiGzDecoder::new(gzip), &mut std::io::sink()).unwrap()
}

#[test]
fn a_written_file_is_read_in_bounded_memory() {
    let directory = tempfile::tempdir().unwrap();
    let texts = texts();
    let mut shapes = Vec::new();
    for format in WRITTEN_FORMATS {
        shapes.extend(texts.iter().map(|shape| in_format(directory.path(), shape, format)));
    }
    check_all(shapes);
}

/// A packed input takes no more memory than one that is not: it is unpacked to disk.
#[test]
fn packed_inputs_take_what_they_take_unpacked() {
    let many = |shape: &Shape| shape.name.contains("tiny samples");
    let packed = |shape: Shape| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(&shape.bytes).unwrap();
        Shape { bytes: gzip.finish().unwrap(), ..shape }
    };
    let shapes: Vec<Shape> = by_hand().into_iter().filter(many).map(packed).collect();
    assert_eq!(shapes.len(), 4);
    check_all(shapes);
    // A stream of sums takes no memory that grows with it.
    let long = packed(Shape::new("folded", "a bomb", "a;b 1\n".repeat(quantity(20 << 20))));
    assert!((long.bytes.len() as u64) << 8 < long.unpacked);
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("bomb"), &long.bytes).unwrap();
    check(directory.path(), &Shape { unpacked: 0, ..long }, &["report", "-i", "bomb"]).unwrap();
}

/// Firefox's profiles: each thread has tables of its own.
fn firefox() -> Vec<Shape> {
    let table = |length: usize, columns: &[(&str, String)]| {
        let columns: String = columns.iter().map(|(name, cells)| format!(",\"{name}\":[{cells}]")).collect();
        format!("{{\"length\":{length}{columns}}}")
    };
    let list = |count: usize, cell: &dyn Fn(usize) -> String| (0..count).map(cell).collect::<Vec<_>>().join(",");
    let same = |count: usize, cell: &'static str| list(count, &|_| cell.to_owned());
    let thread = |tid: usize, samples: usize, functions: usize, prefix: &dyn Fn(usize) -> String, names: &str| {
        let places = || list(functions, &|n| n.to_string());
        let of =
            |stack: &dyn Fn(usize) -> String| [("stack", list(samples, stack)), ("timeDeltas", same(samples, "1"))];
        format!(
            "{{\"name\":\"t{tid}\",\"pid\":\"1\",\"tid\":{tid},\"samples\":{},\"markers\":{{\"length\":0}},\
             \"stackTable\":{},\"frameTable\":{},\"funcTable\":{},\"stringArray\":[{names}]}}",
            table(samples, &of(&|n| (n % functions).to_string())),
            table(functions, &[("prefix", list(functions, prefix)), ("frame", places())]),
            table(
                functions,
                &[("func", places()), ("address", same(functions, "-1")), ("line", same(functions, "null"))]
            ),
            table(functions, &[("name", if names.len() < 8 { same(functions, "0") } else { places() })])
        )
    };
    let file = |threads: String| {
        format!(
            "{{\"meta\":{{\"version\":24,\"preprocessedProfileVersion\":55,\"interval\":1,\"categories\":[]}},\"threads\":[{threads}]}}"
        )
    };
    let names = list(quantity(20_000), &|n| format!("\"function_{n}\""));
    let (flat, deep) =
        (|_| "null".to_owned(), |n: usize| n.checked_sub(1).map_or("null".to_owned(), |n| n.to_string()));
    let threads = list(quantity(3_000), &|n| thread(n + 1, 1, 1, &flat, "\"f\""));
    vec![
        Shape::new("firefox", "tiny samples", file(thread(1, quantity(200_000), 1, &flat, "\"f\"")))
            .samples(quantity(200_000)),
        Shape::new("firefox", "names", file(thread(1, quantity(20_000), quantity(20_000), &flat, &names)))
            .functions(quantity(20_000)),
        Shape::new(
            "firefox",
            "one name in many frames",
            file(thread(1, quantity(20_000), quantity(20_000), &flat, "\"f\"")),
        )
        .functions(quantity(20_000)),
        Shape::new("firefox", "deep stacks", file(thread(1, 1, quantity(20_000), &deep, &names)))
            .functions(quantity(20_000)),
        Shape::new("firefox", "threads with tables", file(threads)).threads(quantity(3_000)).functions(quantity(3_000)),
    ]
}

fn speedscope() -> Vec<Shape> {
    let file = |frames: String, profiles: String| {
        format!(
            "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{{\"frames\":[{frames}]}},\
             \"profiles\":[{profiles}]}}"
        )
    };
    let repeated = |count: usize, what: &str| vec![what; count].join(",");
    let sampled = |samples: String, weights: String| {
        format!(
            "{{\"type\":\"sampled\",\"name\":\"t\",\"unit\":\"none\",\"startValue\":0,\"endValue\":9,\"samples\":[{samples}],\"weights\":[{weights}]}}"
        )
    };
    let evented = |events: String| {
        format!(
            "{{\"type\":\"evented\",\"name\":\"t\",\"unit\":\"none\",\"startValue\":0,\"endValue\":99999999,\"events\":[{events}]}}"
        )
    };
    let a = || "{\"name\":\"a\"}".to_owned();
    let open = |kind: &str, at: usize| format!("{{\"type\":\"{kind}\",\"at\":{at},\"frame\":0}}");
    let nested = (0..quantity(20_000))
        .map(|at| open("O", at))
        .chain((quantity(20_000)..quantity(40_000)).map(|at| open("C", at)));
    let frames: Vec<String> = (0..quantity(20_000)).map(|n| format!("{{\"name\":\"f{n}\"}}")).collect();
    let own: Vec<String> = (0..quantity(20_000)).map(|n| format!("[{n}]")).collect();
    vec![
        Shape::new(
            "speedscope",
            "tiny samples",
            file(a(), sampled(repeated(quantity(200_000), "[0]"), repeated(quantity(200_000), "1"))),
        )
        .samples(quantity(200_000)),
        Shape::new(
            "speedscope",
            "empty samples",
            file(a(), sampled(repeated(quantity(200_000), "[]"), repeated(quantity(200_000), "1"))),
        )
        .samples(quantity(200_000)),
        Shape::new(
            "speedscope",
            "a deep stack",
            file(a(), sampled(format!("[{}]", repeated(quantity(100_000), "0")), "1".into())),
        )
        .functions(quantity(100_000)),
        Shape::new("speedscope", "nested events", file(a(), evented(nested.collect::<Vec<_>>().join(","))))
            .functions(quantity(20_000)),
        Shape::new("speedscope", "threads", file(a(), repeated(quantity(10_000), &sampled("[0]".into(), "1".into()))))
            .threads(quantity(10_000)),
        Shape::new(
            "speedscope",
            "names",
            file(frames.join(","), sampled(own.join(","), repeated(quantity(20_000), "1"))),
        )
        .functions(quantity(20_000)),
    ]
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// pprof's messages, each as short as it can be.
fn pprof() -> Vec<Shape> {
    let number = |field: u64, number: u64| [varint(field << 3), varint(number)].concat();
    let text = |text: &str| field(6, text.as_bytes());
    let start = || {
        let kind = field(1, &[number(1, 1), number(2, 1)].concat());
        [kind, text(""), text("n")].concat()
    };
    let sample = |locations: &[u64]| {
        let ids: Vec<u8> = locations.iter().flat_map(|id| varint(*id)).collect();
        field(2, &[field(1, &ids), field(2, &[1])].concat())
    };
    let location = |id: u64, function: u64| field(4, &[number(1, id), field(4, &number(1, function))].concat());
    let function = |id: u64, name: u64| field(5, &[number(1, id), number(2, name)].concat());
    let labelled = |value: u64| {
        let label = field(3, &[number(1, 1), number(3, value)].concat());
        field(2, &[field(1, &[1]), field(2, &[1]), label].concat())
    };
    let one = || [start(), location(1, 1), function(1, 1)].concat();
    let all = |start: Vec<u8>, more: &mut dyn Iterator<Item = Vec<u8>>| -> Vec<u8> {
        start.into_iter().chain(more.flatten()).collect()
    };
    let deep: Vec<u64> = vec![1; quantity(200_000)];
    let inlined = field(4, &[number(1, 1), field(4, &number(1, 1)).repeat(quantity(50_000))].concat());
    let with_inlined = [start(), function(1, 1), inlined].concat();
    vec![
        Shape::new("pprof", "tiny samples", all(one(), &mut (0..quantity(200_000)).map(|_| sample(&[1])))),
        Shape::new("pprof", "samples without frames", all(one(), &mut (0..quantity(200_000)).map(|_| sample(&[])))),
        Shape::new("pprof", "labels", all(one(), &mut (0..quantity(20_000) as u64).map(labelled)))
            .threads(quantity(20_000)),
        Shape::new("pprof", "a deep stack", [one(), sample(&deep)].concat()).functions(quantity(200_000)),
        Shape::new("pprof", "inlined calls", [with_inlined, sample(&[1])].concat()).functions(quantity(50_000)),
        Shape::new(
            "pprof",
            "one name in many locations",
            all(
                start(),
                &mut (1..quantity(20_000) as u64).map(|id| [location(id, id), function(id, 1), sample(&[id])].concat()),
            ),
        )
        .functions(quantity(20_000)),
    ]
}

fn callgrind() -> Vec<Shape> {
    let file = |body: String| {
        format!("# callgrind format\nversion: 1\ncmd: a\npart: 1\npositions: line\nevents: Ir\n\n{body}")
    };
    let lines = |count: usize, each: &dyn Fn(usize) -> String| (0..count).map(each).collect::<String>();
    vec![
        Shape::new("callgrind", "lines", file(format!("fn=a\n{}", lines(quantity(100_000), &|n| format!("{n} 1\n")))))
            .functions(quantity(100_000)),
        Shape::new("callgrind", "functions", file(lines(quantity(20_000), &|n| format!("fn=({n}) f{n}\n1 1\n"))))
            .functions(quantity(20_000)),
        Shape::new(
            "callgrind",
            "one function again and again",
            file(lines(quantity(100_000), &|_| "fn=a\n1 1\n".to_owned())),
        ),
        Shape::new(
            "callgrind",
            "calls of one",
            file(format!("fn=a\n{}", lines(quantity(20_000), &|n| format!("cfn=f{n}\ncalls=1 0\n1 1\n")))),
        )
        .functions(quantity(20_000)),
        Shape::new(
            "callgrind",
            "a chain of calls",
            file(lines(quantity(20_000), &|n| format!("fn=f{n}\n1 1\ncfn=f{}\ncalls=1 0\n1 1\n", n + 1))),
        )
        .functions(quantity(40_000)),
        Shape::new(
            "callgrind",
            "files and objects",
            file(lines(quantity(20_000), &|n| format!("ob=o{n}\nfl=d{n}\nfn=a\n1 1\n"))),
        )
        .functions(quantity(20_000)),
    ]
}

fn folded() -> Vec<Shape> {
    let lines = |count: usize, each: &dyn Fn(usize) -> String| (0..count).map(each).collect::<String>();
    // A file is known by a stack of several frames.
    let with_two = |lines: String| format!("a;b 1\n{lines}");
    vec![
        Shape::new("folded", "tiny samples", with_two("a 1\n".repeat(quantity(200_000)))),
        Shape::new("folded", "names", with_two(lines(quantity(40_000), &|n| format!("{n:x} 1\n"))))
            .functions(quantity(40_000)),
        Shape::new("folded", "a deep stack", format!("{} 1\n", "a;".repeat(quantity(100_000))))
            .functions(quantity(100_000)),
        Shape::new("folded", "stairs", lines(quantity(600), &|n| format!("{}b 1\n", "a;".repeat(n))))
            .functions(quantity(1_200)),
        Shape::new("folded", "a long name", with_two(format!("{} 1\n", "n".repeat(quantity(8 << 20))))),
    ]
}

/// As the writer puts stacks and names into messages.
fn otlp() -> Vec<Shape> {
    let directory = tempfile::tempdir().unwrap();
    let of = |name: &str| folded().into_iter().find(|shape| shape.name == name).unwrap();
    ["names", "a deep stack", "stairs"].map(|name| in_format(directory.path(), &of(name), "otlp")).to_vec()
}

fn by_hand() -> Vec<Shape> {
    [firefox(), speedscope(), pprof(), callgrind(), folded(), otlp()].concat()
}

#[test]
fn formats_that_are_written_take_bounded_memory() {
    let shapes = by_hand();
    let is_here = |name: &str| shapes.iter().any(|shape| shape.format == name);
    for format in WRITTEN_FORMATS {
        assert!(is_here(format), "{format} has no input");
    }
    check_all(shapes);
}
