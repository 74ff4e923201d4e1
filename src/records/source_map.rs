//! Source maps (ECMA-426, <https://tc39.es/ecma426/>): JSON with VLQ mappings, plain or as an index of sections; and the
//! comments by which a script mentions its map.
//!
//! The mappings are decoded by `oxc_sourcemap`.

mod scopes;

use crate::error::{Error, Result};
use crate::model::script_map::{AuthoredFile, NONE, Place, ScriptMap, Segment};
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use oxc_sourcemap::{SourceMap, Token};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Reads a map.
pub fn parse(bytes: &[u8]) -> Result<ScriptMap> {
    let text = std::str::from_utf8(bytes).map_err(|error| Error::new("is not UTF-8").because(error))?;
    let text = json(text);
    let mut map = ScriptMap::default();
    let has_sections = memchr::memmem::find(text.as_bytes(), b"\"sections\"").is_some();
    let mut room = room_for_paths(text.len());
    let index = if has_sections { Some(serde_json::from_str::<IndexMap<'_>>(text).map_err(broken)?) } else { None };
    let segments = match index.as_ref().and_then(|index| index.sections.as_ref()) {
        Some(sections) => add_sections(sections, &mut map, &mut room)?,
        None => add(text, Place::default(), &mut map, &mut room)?,
    };
    if let Some(IndexMap { file, debug_id, .. }) = index {
        map.script = file.map(Cow::into_owned).or(map.script);
        map.debug_id = debug_id.map(Cow::into_owned).or(map.debug_id);
    }
    map.script = map.script.map(|script| script.rsplit('/').next().unwrap_or_default().to_owned());
    map.set_segments(segments);
    Ok(map)
}

/// The room for directories that are added to the paths of a map's sources, given its length: one text can precede each
/// of very many sources, but no tool writes a map whose paths are much longer than the map.
pub fn room_for_paths(len: usize) -> usize {
    (1 << 20) + 16 * len
}

/// The JSON, without a byte order mark and the line that keeps browsers from running it as a script.
fn json(text: &str) -> &str {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.starts_with(")]}") { text.split_once('\n').map_or("", |(_, rest)| rest) } else { text }
}

#[derive(Deserialize)]
struct IndexMap<'a> {
    #[serde(borrow, default)]
    sections: Option<Vec<MapSection<'a>>>,
    #[serde(borrow, default)]
    file: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "debugId")]
    debug_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Scopes<'a> {
    #[serde(borrow, default)]
    scopes: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct MapSection<'a> {
    offset: Offset,
    #[serde(borrow)]
    map: &'a RawValue,
}

#[derive(Deserialize)]
struct Offset {
    line: u32,
    column: u32,
}

/// Adds the names and sources of all sections to a map, and returns their segments.
fn add_sections(sections: &[MapSection<'_>], map: &mut ScriptMap, room: &mut usize) -> Result<Vec<Segment>> {
    let begin = |MapSection { offset, .. }: &MapSection<'_>| Place { line: offset.line, column: offset.column };
    if !sections.iter().map(begin).is_sorted() {
        return Err(Error::new("is not a source map: its sections are not in order"));
    }
    let mut segments = Vec::new();
    for (at, section) in sections.iter().enumerate() {
        let own = add(section.map.get(), begin(section), map, room)?;
        let end = sections.get(at + 1).map(begin);
        segments.extend(own.into_iter().filter(|segment| end.is_none_or(|end| segment.generated < end)));
    }
    Ok(segments)
}

/// Adds the names and sources of a map without sections, and returns its segments. It begins at a place of the script.
/// `room` is left for what roots add to sources.
fn add(text: &str, begin: Place, map: &mut ScriptMap, room: &mut usize) -> Result<Vec<Segment>> {
    let parts = SourceMap::from_json_string(text).map_err(broken)?.into_parts();
    if memchr::memmem::find(text.as_bytes(), b"\"scopes\"").is_some() {
        let Scopes { scopes } = serde_json::from_str(text).map_err(broken)?;
        let own = scopes.map(|scopes| scopes::read(&scopes, parts.names.len(), begin)).transpose()?;
        map.scopes.append(own.unwrap_or_default(), map.names.len() as u32, map.sources.len() as u32);
    }
    let (first_name, first_source) = (map.names.len() as u32, map.sources.len() as u32);
    let after = |number: Option<u32>, first: u32| number.map_or(NONE, |number| number.saturating_add(first));
    let segment = |token: Token| {
        let (line, column) = (token.get_dst_line(), token.get_dst_col());
        let column = if line == 0 { column.saturating_add(begin.column) } else { column };
        Segment {
            generated: Place { line: line.saturating_add(begin.line), column },
            authored: Place { line: token.get_src_line(), column: token.get_src_col() },
            source: after(token.get_source_id(), first_source),
            name: after(token.get_name_id(), first_name),
        }
    };
    map.names.extend(parts.names.into_iter().map(Cow::into_owned));
    let root = parts.source_root.unwrap_or_default();
    let left = root.len().checked_mul(parts.sources.len()).and_then(|taken| room.checked_sub(taken));
    *room = left.ok_or_else(|| Error::new("is not a source map: the paths of its sources are longer than any"))?;
    let mut contents = parts.source_contents.into_iter();
    map.sources.extend(parts.sources.iter().map(|source| AuthoredFile {
        path: below(&root, source),
        content: contents.next().flatten().map(Cow::into_owned),
        is_third_party: false,
    }));
    for third_party in parts.ignore_list.unwrap_or_default() {
        // The decoder has refused numbers of files that are not there.
        map.sources[first_source as usize + third_party as usize].is_third_party = true;
    }
    map.debug_id = parts.debug_id.map(Cow::into_owned).or(map.debug_id.take());
    map.script = parts.file.map(Cow::into_owned).or(map.script.take());
    Ok(parts.tokens.into_vec().into_iter().map(segment).collect())
}

fn below(root: &str, source: &str) -> String {
    if root.is_empty() || source.starts_with('/') || scheme(source).is_some() {
        return source.to_owned();
    }
    format!("{}/{source}", root.strip_suffix('/').unwrap_or(root))
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new("is not a source map").because(error)
}

/// The scheme of a URL, such as `webpack` of `webpack://app/./a.ts`, and what follows its `:`.
pub fn scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once(':')?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let is_scheme = scheme.len() > 1 && scheme.as_bytes()[0].is_ascii_alphabetic() && scheme.bytes().all(is_letter);
    is_scheme.then_some((scheme, rest))
}

/// The reference to its map in a script.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Mention<'a> {
    /// The last `sourceMappingURL`.
    pub url: Option<&'a str>,
    /// The last `debugId`.
    pub debug_id: Option<&'a str>,
}

impl<'a> Mention<'a> {
    /// From a script's text. The comments are alone on their lines (`//# sourceMappingURL=…`, or with `@`), behind all
    /// code, so only the end of the text is looked at: a map in the URL itself may be long, other comments are not.
    pub fn of(text: &'a str) -> Self {
        let mut mention = Self::default();
        for line in text.lines().rev().filter(|line| !line.trim().is_empty()) {
            let line = line.trim();
            let comment = line.strip_prefix("//#").or_else(|| line.strip_prefix("//@"));
            let comment = comment.or_else(|| line.strip_prefix("/*#")?.strip_suffix("*/"));
            match comment.and_then(|comment| comment.trim().split_once('=')) {
                Some(("sourceMappingURL", url)) => mention.url = mention.url.or(Some(url.trim())),
                Some(("debugId", id)) => mention.debug_id = mention.debug_id.or(Some(id.trim())),
                _ if line.starts_with("//") || line.starts_with("/*") => {}
                // Some tools put the comment behind the last line of code.
                _ => {
                    let last = line.rsplit_once("//# sourceMappingURL=").map(|(_, url)| url.trim());
                    let is_url = |url: &&str| !url.contains(['"', '\'', '`', ' ']);
                    mention.url = mention.url.or(last.filter(is_url));
                    break;
                }
            }
        }
        mention
    }
}

/// The map in a `data:` URL (what follows the scheme). `None` if it cannot be decoded.
pub fn data(url: &str) -> Option<Vec<u8>> {
    /// Tools leave the padding out.
    const BASE64: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let (about, data) = url.split_once(',')?;
    if about.split(';').any(|word| word == "base64") { BASE64.decode(data).ok() } else { Some(unescaped(data)) }
}

/// A text without percent escapes.
pub fn unescaped(text: &str) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [byte, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| *byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        plain.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a` of x.ts 1:2 at 0:4, without a name; `b` of it at 0:6, called `name`; nothing at 1:0.
    const MAP: &str = r#"{"version":3,"file":"d/app.js","sourceRoot":"src/","sources":["x.ts"],"names":["name"],"mappings":"IACE,EAAAA;A"}"#;

    fn told(map: &ScriptMap) -> Vec<String> {
        let name = |segment: &Segment| map.names.get(segment.name as usize).map_or("-", |name| name);
        let source = |segment: &Segment| map.source_of(segment).map_or("-", |source| &source.path);
        let told = |segment: &Segment| {
            let Segment { generated, authored, .. } = segment;
            format!(
                "{}:{} {} {}:{} {}",
                generated.line,
                generated.column,
                source(segment),
                authored.line,
                authored.column,
                name(segment)
            )
        };
        map.segments().iter().map(told).collect()
    }

    #[test]
    fn mappings_are_those_of_the_format() {
        let map = parse(MAP.as_bytes()).unwrap();
        assert_eq!(told(&map), ["0:4 src/x.ts 1:2 -", "0:6 src/x.ts 1:2 name", "1:0 - 1:2 -"]);
        assert_eq!(map.script.as_deref(), Some("app.js"));
        let guarded = format!(")]}}'\n{MAP}");
        assert_eq!(told(&parse(guarded.as_bytes()).unwrap()), told(&map));
    }

    #[test]
    fn sections_begin_at_their_offsets_and_end_at_the_next_one() {
        let offset = |line, column| format!(r#"{{"offset":{{"line":{line},"column":{column}}},"map":{MAP}}}"#);
        let index = format!(r#"{{"version":3,"file":"i.js","sections":[{},{}]}}"#, offset(0, 10), offset(1, 0));
        let map = parse(index.as_bytes()).unwrap();
        assert_eq!(
            told(&map),
            [
                "0:14 src/x.ts 1:2 -",
                "0:16 src/x.ts 1:2 name",
                "1:4 src/x.ts 1:2 -",
                "1:6 src/x.ts 1:2 name",
                "2:0 - 1:2 -"
            ]
        );
        assert_eq!((map.sources.len(), map.script.as_deref()), (2, Some("i.js")));
        let wrong = format!(r#"{{"sections":[{},{}]}}"#, offset(1, 0), offset(0, 0));
        assert!(parse(wrong.as_bytes()).unwrap_err().to_string().contains("not in order"));
    }

    #[test]
    fn a_false_map_is_an_error() {
        for text in ["", "{", "[]", "\u{feff}", ")]}'", r#"{"version":2,"sources":[],"mappings":""}"#] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        for mappings in ["AAAA", "A,,,!", "gggggggggggggggB", "AACAA", "D"] {
            let text = format!(r#"{{"version":3,"sources":[],"names":[],"mappings":"{mappings}"}}"#);
            assert!(parse(text.as_bytes()).is_err(), "{mappings}");
        }
        assert!(parse(b"\xff\xfe").is_err());
    }

    #[test]
    fn a_root_before_each_of_many_sources_takes_no_gigabytes() {
        let map = |root: usize, sources: usize| {
            let (root, sources) = ("r".repeat(root), vec![r#""s""#; sources].join(","));
            format!(r#"{{"version":3,"sourceRoot":"{root}","sources":[{sources}],"names":[],"mappings":""}}"#)
        };
        assert_eq!(parse(map(100, 10_000).as_bytes()).unwrap().sources.len(), 10_000);
        let said = parse(map(100_000, 100_000).as_bytes()).unwrap_err().to_string();
        assert!(said.contains("paths of its sources are longer"), "{said}");
        let sections = vec![format!(r#"{{"offset":{{"line":0,"column":0}},"map":{}}}"#, map(1000, 900)); 100].join(",");
        assert!(parse(format!(r#"{{"sections":[{sections}]}}"#).as_bytes()).is_err(), "all sections together");
    }

    #[test]
    fn the_last_mention_counts_and_only_behind_the_code() {
        let mention = |text: &'static str| {
            let Mention { url, debug_id } = Mention::of(text);
            (url, debug_id)
        };
        assert_eq!(mention("f();\n//# sourceMappingURL=a.js.map\n"), (Some("a.js.map"), None));
        assert_eq!(mention("f();\r\n//@ sourceMappingURL=a.map\r\n"), (Some("a.map"), None));
        assert_eq!(
            mention("//# sourceMappingURL=old.map\nf()\n/*# sourceMappingURL=new.map */"),
            (Some("new.map"), None)
        );
        assert_eq!(mention("//# sourceMappingURL=old.map\nf()"), (None, None));
        assert_eq!(
            mention("f()\n//# sourceMappingURL=a.map\n// end\n//# debugId=85314830-023f\n"),
            (Some("a.map"), Some("85314830-023f"))
        );
        assert_eq!(mention("f();//# sourceMappingURL=a.map"), (Some("a.map"), None));
        assert_eq!(mention("f('//# sourceMappingURL=a.map')"), (None, None));
    }

    #[test]
    fn data_urls_and_escapes() {
        assert_eq!(data("application/json;charset=utf-8;base64,e30=").unwrap(), b"{}");
        assert_eq!(data("application/json;base64,e30").unwrap(), b"{}");
        assert_eq!(data("application/json,%7B%7d").unwrap(), b"{}");
        assert_eq!(data("application/json;base64,!"), None);
        assert_eq!(data("application/json"), None);
        assert_eq!(unescaped("a%20b%2"), b"a b%2");
        assert_eq!(unescaped("100%zz"), b"100%zz");
    }
}
