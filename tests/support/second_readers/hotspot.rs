//! A second reader of HotSpot's log, slow and obvious, line by line. It shares no code with jitgraft.

/// A compiled method.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    /// The method's name, followed by the compiler.
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// In nanoseconds since the JVM started.
    pub(crate) stamp: u64,
}

/// The compiled methods, in the order of the log's `<nmethod>` elements.
pub(crate) fn read(text: &str) -> Vec<Compiled> {
    text.lines().filter(|line| line.starts_with("<nmethod ")).map(method).collect()
}

/// The value of an attribute; `None` if the element doesn't have it.
pub(crate) fn value(line: &str, key: &str) -> Option<String> {
    let begin = line.find(&format!(" {key}='"))? + key.len() + 3;
    let raw = &line[begin..begin + line[begin..].find('\'')?];
    let mut plain = raw.replace("&lt;", "<").replace("&gt;", ">").replace("&apos;", "'").replace("&amp;", "&");
    while let Some(at) = plain.find("\\u") {
        let letter = char::from_u32(u32::from_str_radix(&plain[at + 2..at + 6], 16).unwrap()).unwrap();
        plain.replace_range(at..at + 6, &letter.to_string());
    }
    Some(plain)
}

fn method(line: &str) -> Compiled {
    let text = |key: &str| value(line, key).unwrap_or_else(|| panic!("no {key} in {line}"));
    let hex = |key: &str| u64::from_str_radix(&text(key)[2..], 16).unwrap();
    let (entry, address, size) = (hex("entry"), hex("address"), text("size").parse::<u64>().unwrap());
    let name = text("method");
    let words: Vec<&str> = name.split(' ').collect();
    let [class, method, descriptor] = words[..] else { panic!("{name}") };
    let mark = match &text("compiler")[..] {
        "" => String::new(),
        compiler => format!(" [{compiler}]"),
    };
    // JDK 25 keeps its other data elsewhere.
    let end = value(line, "oops_offset").map_or(size, |offset| offset.parse().unwrap());
    let (seconds, millis) = {
        let stamp = text("stamp");
        let (seconds, millis) = stamp.split_once('.').unwrap();
        (seconds.parse::<u64>().unwrap(), millis.parse::<u64>().unwrap())
    };
    Compiled {
        name: spelled(class, method, descriptor) + &mark,
        start: entry,
        size: address + end - entry,
        stamp: (seconds * 1000 + millis) * 1_000_000,
    }
}

fn spelled(class: &str, method: &str, descriptor: &str) -> String {
    let mut letters = descriptor[1..].chars().peekable();
    let mut arguments = Vec::new();
    while letters.peek() != Some(&')') {
        arguments.push(one(&mut letters));
    }
    letters.next();
    format!("{} {class}.{method}({})", one(&mut letters), arguments.join(", "))
}

/// The Java name of the type at the start of a descriptor.
pub(crate) fn one(letters: &mut impl Iterator<Item = char>) -> String {
    match letters.next().unwrap() {
        '[' => one(letters) + "[]",
        'L' => letters.take_while(|letter| *letter != ';').collect::<String>().replace('/', "."),
        letter => {
            let names = [
                ('B', "byte"),
                ('C', "char"),
                ('D', "double"),
                ('F', "float"),
                ('I', "int"),
                ('J', "long"),
                ('S', "short"),
                ('V', "void"),
                ('Z', "boolean"),
            ];
            names.iter().find(|(own, _)| *own == letter).unwrap().1.to_owned()
        }
    }
}
