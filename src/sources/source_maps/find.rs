//! A script → its text and its map.

use super::options::{GivenMap, MapSearch};
use super::paths::{authored, file_of, plain};
use crate::error::Result;
use crate::io;
use crate::io::door::{Holes, Kind, Named};
use crate::model::script_map::ScriptMap;
use crate::records::source_map;
use crate::records::source_map::{Mention, scheme};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What was found for a script.
pub(super) enum Lookup {
    /// Neither a map nor a reason to expect one.
    Nothing,
    /// A map that is not used.
    Refused {
        /// What it is called.
        map: Option<String>,
        /// Why not.
        why: String,
    },
    /// The script's text and its map.
    Found {
        /// What the map is called.
        map: String,
        /// The script.
        text: Vec<u8>,
        /// The map.
        parsed: Box<ScriptMap>,
        /// What its authored files are called.
        files: Vec<String>,
    },
}

/// Scripts and maps are texts.
const TEXT: Kind =
    Kind { holes: |head| (!head.contains(&0)).then_some(Holes::Small), otherwise: "is not a script or a source map" };

/// Larger ones are refused: a map is in memory several times over while it is read.
const LARGEST: u64 = 1 << 30;

/// So many maps of a directory are opened to compare their `debugId`.
const MOST_MAPS: usize = 1000;

/// A map that may be a script's.
struct Candidate {
    name: String,
    bytes: Vec<u8>,
    /// The directory that its sources are relative to.
    base: PathBuf,
}

impl MapSearch<'_> {
    /// The text and the map of a script that an engine calls so.
    pub(super) fn find(&self, script: &str) -> Lookup {
        let Some(recorded) = file_of(script) else { return Lookup::Nothing };
        let Some((place, text)) = self.script(&recorded) else { return Lookup::Nothing };
        let decoded = String::from_utf8_lossy(&text);
        let mention = Mention::of(&decoded);
        let found = match self.given(&recorded, &mention) {
            Some(found) => Some(found),
            None => self.own(&recorded, &place, &mention),
        };
        match found {
            None => Lookup::Nothing,
            Some(Err((map, why))) => Lookup::Refused { map: Some(map), why },
            Some(Ok(Candidate { name, bytes, base })) => {
                let parsed = match source_map::parse(&bytes) {
                    Ok(parsed) => parsed,
                    Err(error) => return Lookup::Refused { map: Some(name), why: error.to_string() },
                };
                if let (Some(of_map), Some(of_script)) = (&parsed.debug_id, mention.debug_id)
                    && !of_map.eq_ignore_ascii_case(of_script)
                {
                    let why = format!("its debugId is {of_map}, the script's is {of_script}");
                    return Lookup::Refused { map: Some(name), why };
                }
                let files = parsed.sources.iter().map(|source| authored(&source.path, &base)).collect();
                drop(decoded);
                Lookup::Found { map: name, text, parsed: Box::new(parsed), files }
            }
        }
    }

    /// The script's text, and where it is here.
    fn script(&self, recorded: &Path) -> Option<(PathBuf, Vec<u8>)> {
        let below = self.symfs.map(|root| root.join(recorded.strip_prefix("/").unwrap_or(recorded)));
        let beside = self.beside.and_then(|dir| Some(dir.join(recorded.file_name()?)));
        let places = [Some(below.unwrap_or_else(|| recorded.to_owned())), beside].into_iter().flatten();
        places.into_iter().find_map(|place| {
            let text = self.read(&place, Named::Recording)?.ok()?;
            Some((place, text))
        })
    }

    /// A file's contents; `None` if there is none.
    fn read(&self, path: &Path, named: Named) -> Option<Result<Vec<u8>, String>> {
        let door = named.door(self.force);
        if door.look(path)?.len() > LARGEST {
            return Some(Err("it is larger than 1 GiB".to_owned()));
        }
        let opened = door.open(path, TEXT)?;
        Some(opened.map(|opened| opened.bytes.to_vec()).map_err(|error| error.to_string()))
    }

    /// The map that the user named for a script.
    fn given(&self, script: &Path, mention: &Mention<'_>) -> Option<Result<Candidate, (String, String)>> {
        self.options.given.iter().find_map(|GivenMap { path, script: of }| match of {
            Some(of) => script.ends_with(of).then(|| self.candidate(path, Named::User))?,
            None if io::is_directory(path) => self.in_directory(path, script, mention),
            None => self.if_of(path, script, mention),
        })
    }

    fn in_directory(
        &self,
        directory: &Path,
        script: &Path,
        mention: &Mention<'_>,
    ) -> Option<Result<Candidate, (String, String)>> {
        if let Some(found) = self.candidate(&directory.join(with_map(script.file_name()?)), Named::User) {
            return Some(found);
        }
        mention.debug_id?;
        let is_map = |name: &OsStr| name.as_encoded_bytes().ends_with(b".map");
        let mut names = Named::User.door(self.force).entries(directory, is_map);
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        names.into_iter().take(MOST_MAPS).find_map(|(name, _)| self.if_of(&directory.join(name), script, mention))
    }

    /// A map of the user's, if it says itself that it belongs to this script.
    fn if_of(&self, path: &Path, script: &Path, mention: &Mention<'_>) -> Option<Result<Candidate, (String, String)>> {
        let name = script.file_name()?;
        if path.file_name() == Some(&with_map(name)) {
            return self.candidate(path, Named::User);
        }
        let found = self.candidate(path, Named::User)?.ok()?;
        let map = source_map::parse(&found.bytes).ok()?;
        let same_id = map.debug_id.as_deref().zip(mention.debug_id).map(|(own, of)| own.eq_ignore_ascii_case(of));
        let same_name = || map.script.as_deref().is_some_and(|own| OsStr::new(own) == name);
        same_id.unwrap_or_else(same_name).then_some(Ok(found))
    }

    fn candidate(&self, path: &Path, named: Named) -> Option<Result<Candidate, (String, String)>> {
        let name = path.display().to_string();
        let base = std::path::absolute(path).ok().and_then(|path| Some(path.parent()?.to_owned())).unwrap_or_default();
        Some(self.read(path, named)?.map_err(|why| (name.clone(), why)).map(|bytes| Candidate { name, bytes, base }))
    }

    /// The map that the script names, or that lies beside it. `recorded` is where the engine read it, `place` where it is.
    fn own(&self, recorded: &Path, place: &Path, mention: &Mention<'_>) -> Option<Result<Candidate, (String, String)>> {
        let (directory, here) = (recorded.parent()?, place.parent()?);
        let beside = || {
            let path = here.join(with_map(place.file_name()?));
            Some(
                self.candidate(&path, Named::Recording)?.map(|found| Candidate { base: directory.to_owned(), ..found }),
            )
        };
        let Some(url) = mention.url else { return beside() };
        let named = match scheme(url) {
            Some(("data", rest)) => {
                let name = format!("in {}", place.display());
                let Some(bytes) = source_map::data(rest) else {
                    return Some(Err((name, "its data: URL cannot be decoded".to_owned())));
                };
                return Some(Ok(Candidate { name, bytes, base: directory.to_owned() }));
            }
            Some(("file", _)) => Cow::Owned(file_of(url)?),
            Some(_) => {
                let remedy = format!("nothing is fetched; pass a copy with --source-maps FILE={}", recorded.display());
                return beside().or(Some(Err((url.to_owned(), remedy))));
            }
            None => {
                let path = OsString::from(String::from_utf8_lossy(&source_map::unescaped(url)).into_owned());
                Cow::Owned(directory.join(path))
            }
        };
        let named = plain(&named);
        let Ok(below) = named.strip_prefix(plain(directory)) else {
            let why = format!(
                "it is outside of the script's directory; if you trust it, pass --source-maps {}={}",
                named.display(),
                recorded.display()
            );
            return beside().or(Some(Err((named.display().to_string(), why))));
        };
        let base = named.parent().unwrap_or(directory).to_owned();
        let found = self.candidate(&here.join(below), Named::Recording);
        match found {
            Some(found) => Some(found.map(|found| Candidate { base, ..found })),
            None => beside(),
        }
    }
}

fn with_map(name: &OsStr) -> OsString {
    let mut name = name.to_owned();
    name.push(".map");
    name
}
