//! Reads source maps (ECMA-426, <https://tc39.es/ecma426/>): JSON with VLQ mappings, plain or as an index of sections.
//! Also finds the comments in which a script refers to its map.
//!
//! A map is parsed once. Its source texts, which are most of its bytes, stay in the file as JSON and are decoded when
//! they are needed.

mod mappings;
mod scopes;
mod vlq;

use crate::error::{Error, Result};
use crate::model::file_bytes::FileBytes;
use crate::model::script_map::{AuthoredFile, JsonString, Place, ScriptMap, Segment};
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use mappings::{Numbers, decode};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Parses a source map.
pub fn parse(file: &FileBytes) -> Result<ScriptMap> {
    let text = json_text(file.bytes())?;
    let json = Json::parse(text)?;
    let mut reader = MapReader { file, map: ScriptMap::default(), room: room_for_paths(text.len()) };
    let segments = match &json.sections {
        Some(sections) => reader.add_sections(sections)?,
        None => reader.add_plain_map(&json, Place::default())?,
    };
    let mut map = reader.map;
    // If the source map is an index of sections, what it says about itself (ID, script) takes precedence over what its
    // sections say.
    let about = json.about();
    map.debug_id = about.debug_id.or(map.debug_id);
    map.script = about.script.or(map.script);
    map.set_segments(segments);
    Ok(map)
}

/// What a map says about the script it belongs to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct About {
    /// ID of the build, which the script states in a comment, too. `None` if the source map has no ID.
    pub debug_id: Option<String>,
    /// The script's file name without directories, according to the source map; `None` if the map doesn't state it.
    pub script: Option<String>,
}

impl About {
    /// Reads which script a map belongs to, without decoding its mappings.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        Ok(Json::parse(json_text(bytes)?)?.about())
    }
}

/// How many bytes the source roots of a map may add to the paths of its sources, given the map's length in bytes.
/// Without a limit, a small map could take a lot of memory, by prepending a long root to very many sources. No tool
/// writes maps whose paths are much longer than the map.
pub fn room_for_paths(len: usize) -> usize {
    (1 << 20) + 16 * len
}

/// The JSON text, without a byte order mark and without the `)]}` line that prevents browsers from running it as a
/// script.
fn json_text(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes).map_err(|error| Error::new("is not UTF-8").because(error))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.starts_with(")]}") {
        return Ok(text);
    }
    Ok(text.split_once('\n').map_or("", |(_, rest)| rest))
}

/// The members of a source map's JSON object. If the map is an index of sections, only `version`, `file`, `debugId` and
/// `sections` are used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json<'a> {
    version: u32,
    #[serde(borrow)]
    file: Option<Text<'a>>,
    #[serde(borrow)]
    debug_id: Option<Text<'a>>,
    #[serde(borrow)]
    sections: Option<Vec<Section<'a>>>,
    #[serde(borrow)]
    source_root: Option<Text<'a>>,
    /// The path of each source; `null` if it has none.
    #[serde(borrow, default)]
    sources: Vec<Option<Text<'a>>>,
    #[serde(borrow)]
    sources_content: Option<Vec<Option<&'a RawValue>>>,
    #[serde(borrow, default)]
    names: Vec<Text<'a>>,
    #[serde(borrow)]
    mappings: Option<Text<'a>>,
    #[serde(borrow)]
    scopes: Option<Text<'a>>,
    ignore_list: Option<Vec<usize>>,
    #[serde(rename = "x_google_ignoreList")]
    google_ignore_list: Option<serde_json::Value>,
}

/// A JSON string, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Section<'a> {
    offset: Offset,
    #[serde(borrow)]
    map: &'a RawValue,
}

#[derive(Deserialize)]
struct Offset {
    line: u32,
    column: u32,
}

impl Section<'_> {
    /// Where the section begins in the script.
    fn start(&self) -> Place {
        Place { line: self.offset.line, column: self.offset.column }
    }
}

impl<'a> Json<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let json: Self = serde_json::from_str(text).map_err(not_a_map)?;
        match json.version {
            3 => Ok(json),
            _ => Err(Error::new("is not a source map: its version is not 3")),
        }
    }

    fn about(&self) -> About {
        About {
            debug_id: self.debug_id.as_ref().map(|Text(id)| id.clone().into_owned()),
            script: self.file.as_ref().map(|Text(path)| path.rsplit('/').next().unwrap_or_default().to_owned()),
        }
    }

    /// Indices of the sources that are third-party code. The older list `x_google_ignoreList` is only used without
    /// `ignoreList`.
    fn third_party(&self) -> Result<Cow<'_, [usize]>> {
        let list = match (&self.ignore_list, &self.google_ignore_list) {
            (Some(list), _) => Cow::Borrowed(list.as_slice()),
            (None, Some(older)) => Cow::Owned(Option::deserialize(older).map_err(not_a_map)?.unwrap_or_default()),
            (None, None) => Cow::default(),
        };
        if list.iter().any(|index| *index >= self.sources.len()) {
            return Err(Error::new("is not a source map: its ignoreList refers to missing sources"));
        }
        Ok(list)
    }
}

/// Collects the parts of a map while it is read.
struct MapReader<'f> {
    file: &'f FileBytes,
    map: ScriptMap,
    /// How many more bytes source roots may add to paths ([`room_for_paths`]).
    room: usize,
}

impl MapReader<'_> {
    /// Adds the names and sources of all sections, and returns their segments. Fails if the sections are not in the
    /// order of their starts.
    fn add_sections(&mut self, sections: &[Section<'_>]) -> Result<Vec<Segment>> {
        if !sections.iter().map(Section::start).is_sorted() {
            return Err(Error::new("is not a source map: its sections are not in order"));
        }
        let mut segments = Vec::new();
        for (index, section) in sections.iter().enumerate() {
            let mut section_segments = self.add_plain_map(&Json::parse(section.map.get())?, section.start())?;
            // A section ends where the next one starts, even if its map goes on.
            if let Some(next) = sections.get(index + 1) {
                section_segments.retain(|segment| segment.generated < next.start());
            }
            segments.append(&mut section_segments);
        }
        Ok(segments)
    }

    /// Adds names and sources of a map without sections, and returns its segments. `start` is where the map's code
    /// begins in the script.
    fn add_plain_map(&mut self, json: &Json<'_>, start: Place) -> Result<Vec<Segment>> {
        // A section that is itself divided into sections has no mappings, so it is refused here, too. The format
        // doesn't allow it.
        let Some(Text(mappings)) = &json.mappings else {
            return Err(Error::new("is not a source map: it has no mappings"));
        };
        // If this map is a section of a larger one, its sources and names are appended to those of the sections before
        // it.
        let first = Numbers { sources: self.map.sources.len(), names: self.map.name_count() };
        let counts = Numbers { sources: json.sources.len(), names: json.names.len() };
        let segments = decode(mappings.as_bytes(), start, first, counts)?;
        if let Some(Text(scopes)) = &json.scopes {
            let scopes = scopes::read(scopes, counts.names, start)?;
            self.map.scopes.append(scopes, first.names as u32, first.sources as u32);
        }
        for Text(name) in &json.names {
            self.map.push_name(name);
        }
        self.add_sources(json)?;
        // If several sections state an ID or a script, the last one wins.
        let About { debug_id, script } = json.about();
        self.map.debug_id = debug_id.or(self.map.debug_id.take());
        self.map.script = script.or(self.map.script.take());
        Ok(segments)
    }

    /// Adds the authored files that the source map lists, with their texts if the map contains them.
    fn add_sources(&mut self, json: &Json<'_>) -> Result<()> {
        let root = json.source_root.as_ref().map_or("", |Text(root)| root);
        // The root is repeated in each path, so `room` limits how many bytes all copies take.
        let added = root.len().checked_mul(json.sources.len());
        let Some(room) = added.and_then(|added| self.room.checked_sub(added)) else {
            return Err(Error::new("is not a source map: the paths of its sources are too long"));
        };
        self.room = room;
        let first = self.map.sources.len();
        let mut contents = json.sources_content.iter().flatten();
        for source in &json.sources {
            let path = match source {
                Some(Text(source)) => join_root(root, source),
                None => String::new(),
            };
            let content = match contents.next() {
                Some(Some(text)) => Some(self.string(text)?),
                _ => None,
            };
            self.map.sources.push(AuthoredFile { path, content, is_third_party: false });
        }
        // The indices of third-party sources count from this map's first source.
        for index in json.third_party()?.iter() {
            self.map.sources[first + index].is_third_party = true;
        }
        Ok(())
    }

    /// Returns a reference to a JSON string in the source map's file. The string isn't decoded before it is needed.
    /// Fails if `json` is something else than a string.
    fn string(&self, json: &RawValue) -> Result<JsonString> {
        let json = json.get();
        if json.starts_with('"')
            && let Some(string) = JsonString::new(self.file, json)
        {
            return Ok(string);
        }
        Err(Error::new("is not a source map: sourcesContent has an entry that is not a string"))
    }
}

/// Prepends the source root to a source, unless the source is an absolute path or URL.
fn join_root(root: &str, source: &str) -> String {
    if root.is_empty() || source.starts_with('/') || split_scheme(source).is_some() {
        return source.to_owned();
    }
    format!("{}/{source}", root.strip_suffix('/').unwrap_or(root))
}

fn not_a_map(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new("is not a source map").because(error)
}

/// Splits a URL into its scheme and the rest after `:`, for example `webpack` and `//app/./a.ts`. `None` if it has no
/// scheme.
pub fn split_scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once(':')?;
    // A single letter is no scheme, but a Windows drive.
    if scheme.len() < 2 || !scheme.as_bytes()[0].is_ascii_alphabetic() {
        return None;
    }
    let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some((scheme, rest))
}

/// How a script's comments refer to its map.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Mention<'a> {
    /// The last `sourceMappingURL`; `None` if there is none.
    pub url: Option<&'a str>,
    /// The last `debugId`; `None` if there is none.
    pub debug_id: Option<&'a str>,
}

impl<'a> Mention<'a> {
    /// Finds the comments in a script's text, such as `//# sourceMappingURL=…` (or with `@`). They are on lines of
    /// their own after all code, so the lines are searched backwards. The search ends at the last line of code, which
    /// may itself end with a comment that has a URL.
    pub fn find(text: &'a str) -> Self {
        let mut mention = Self::default();
        for line in text.lines().rev().map(str::trim).filter(|line| !line.is_empty()) {
            match magic_comment(line) {
                // The lines are read backwards, so the first comment found is the script's last one, which counts.
                Some(("sourceMappingURL", url)) => mention.url = mention.url.or(Some(url.trim())),
                Some(("debugId", id)) => mention.debug_id = mention.debug_id.or(Some(id.trim())),
                _ if !Self::is_code(line) => {}
                _ => {
                    mention.url = mention.url.or_else(|| url_after_code(line));
                    break;
                }
            }
        }
        mention
    }

    /// True if a line is code, so that comments above it are not those of the source map.
    pub fn is_code(line: &str) -> bool {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("//") && !line.starts_with("/*")
    }
}

/// Key and value of a line that is a `//# key=value` comment. `None` for other lines.
fn magic_comment(line: &str) -> Option<(&str, &str)> {
    let comment = line.strip_prefix("//#").or_else(|| line.strip_prefix("//@"));
    let comment = comment.or_else(|| line.strip_prefix("/*#")?.strip_suffix("*/"))?;
    comment.trim().split_once('=')
}

/// The URL in a comment after code on the same line, where some tools put it. `None` if there is none, or if quotes or
/// blanks show that it is part of a string.
fn url_after_code(line: &str) -> Option<&str> {
    let (_, url) = line.rsplit_once("//# sourceMappingURL=")?;
    let url = url.trim();
    (!url.contains(['"', '\'', '`', ' '])).then_some(url)
}

/// Decodes a map in a `data:` URL. `url` is what follows the scheme. `None` if it can't be decoded.
pub fn decode_data_url(url: &str) -> Option<Vec<u8>> {
    /// Accepts data with and without padding, because some tools omit it.
    const BASE64: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let (media_type, data) = url.split_once(',')?;
    if media_type.split(';').any(|word| word == "base64") {
        BASE64.decode(data).ok()
    } else {
        Some(decode_percent(data))
    }
}

/// Decodes percent escapes. Invalid ones stay unchanged.
pub fn decode_percent(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        if *byte == b'%'
            && let Some(digits) = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())
            && let Ok(escaped) = u8::from_str_radix(digits, 16)
        {
            decoded.push(escaped);
            rest = &after[2..];
        } else {
            decoded.push(*byte);
            rest = after;
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Position 0:4 maps to 1:2 of x.ts, without a name; 0:6 maps to the same place, with the name `name`; 1:0 maps to
    /// nothing.
    const MAP: &str = r#"{"version":3,"file":"d/app.js","sourceRoot":"src/","sources":["x.ts"],"names":["name"],"mappings":"IACE,EAAAA;A"}"#;

    fn parse(bytes: &[u8]) -> Result<ScriptMap> {
        super::parse(&FileBytes::new(bytes.to_vec()))
    }

    /// Each segment as `GENERATED SOURCE AUTHORED NAME`.
    fn segment_lines(map: &ScriptMap) -> Vec<String> {
        let mut lines = Vec::new();
        for segment in map.segments() {
            let Segment { generated, authored, .. } = segment;
            let source = map.source_of(segment).map_or("-", |source| &source.path);
            let name = map.name(segment.name).unwrap_or("-");
            lines.push(format!(
                "{}:{} {source} {}:{} {name}",
                generated.line, generated.column, authored.line, authored.column
            ));
        }
        lines
    }

    #[test]
    fn mappings_are_those_of_the_format() {
        let map = parse(MAP.as_bytes()).unwrap();
        assert_eq!(segment_lines(&map), ["0:4 src/x.ts 1:2 -", "0:6 src/x.ts 1:2 name", "1:0 - 1:2 -"]);
        assert_eq!(map.script.as_deref(), Some("app.js"));
        let guarded = format!(")]}}'\n{MAP}");
        assert_eq!(segment_lines(&parse(guarded.as_bytes()).unwrap()), segment_lines(&map));
    }

    #[test]
    fn sections_begin_at_their_offsets_and_end_at_the_next_one() {
        let offset = |line, column| format!(r#"{{"offset":{{"line":{line},"column":{column}}},"map":{MAP}}}"#);
        let index = format!(r#"{{"version":3,"file":"i.js","sections":[{},{}]}}"#, offset(0, 10), offset(1, 0));
        let map = parse(index.as_bytes()).unwrap();
        assert_eq!(
            segment_lines(&map),
            [
                "0:14 src/x.ts 1:2 -",
                "0:16 src/x.ts 1:2 name",
                "1:4 src/x.ts 1:2 -",
                "1:6 src/x.ts 1:2 name",
                "2:0 - 1:2 -"
            ]
        );
        assert_eq!((map.sources.len(), map.script.as_deref()), (2, Some("i.js")));
        let wrong = format!(r#"{{"version":3,"sections":[{},{}]}}"#, offset(1, 0), offset(0, 0));
        assert!(parse(wrong.as_bytes()).unwrap_err().to_string().contains("not in order"));
    }

    #[test]
    fn a_source_may_be_unnamed_and_the_others_keep_their_numbers() {
        let map =
            r#"{"version":3,"sources":[null,"x.ts"],"sourcesContent":["a",null],"names":[],"mappings":"AAAA,CCAA"}"#;
        let map = parse(map.as_bytes()).unwrap();
        assert_eq!(segment_lines(&map), ["0:0  0:0 -", "0:1 x.ts 0:0 -"]);
        assert_eq!(map.sources[0].content.as_ref().and_then(JsonString::text).as_deref(), Some("a"));
    }

    #[test]
    fn authored_texts_are_read_from_json_on_request() {
        let text = |content: &str| {
            let map = format!(r#"{{"version":3,"sources":["a"],"sourcesContent":[{content}],"mappings":""}}"#);
            parse(map.as_bytes()).map(|map| map.sources[0].content.as_ref().and_then(JsonString::text))
        };
        assert_eq!(text(r#""a\n\"\u00e4\ud83d\ude00\"""#).unwrap().as_deref(), Some("a\n\"\u{e4}\u{1f600}\""));
        assert_eq!(text(r#""\ud83d""#).unwrap(), None, "half a letter");
        assert!(text("7").is_err() && text("null").unwrap().is_none());
    }

    #[test]
    fn the_script_of_a_map_is_found_without_decoding_it() {
        let about = About::read(br#"{"version":3,"file":"d/a.js","debugId":"85314830","mappings":"!"}"#).unwrap();
        assert_eq!(about, About { debug_id: Some("85314830".to_owned()), script: Some("a.js".to_owned()) });
    }

    #[test]
    fn text_that_is_not_a_map_is_an_error() {
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
        assert!(said.contains("paths of its sources are too long"), "{said}");
        let sections = vec![format!(r#"{{"offset":{{"line":0,"column":0}},"map":{}}}"#, map(1000, 900)); 100].join(",");
        assert!(
            parse(format!(r#"{{"version":3,"sections":[{sections}]}}"#).as_bytes()).is_err(),
            "all sections together"
        );
    }

    #[test]
    fn the_last_mention_counts_and_only_behind_the_code() {
        let mention = |text: &'static str| {
            let Mention { url, debug_id } = Mention::find(text);
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
        assert_eq!(decode_data_url("application/json;charset=utf-8;base64,e30=").unwrap(), b"{}");
        assert_eq!(decode_data_url("application/json;base64,e30").unwrap(), b"{}");
        assert_eq!(decode_data_url("application/json,%7B%7d").unwrap(), b"{}");
        assert_eq!(decode_data_url("application/json;base64,!"), None);
        assert_eq!(decode_data_url("application/json"), None);
        assert_eq!(decode_percent("a%20b%2"), b"a b%2");
        assert_eq!(decode_percent("100%zz"), b"100%zz");
    }
}
