//! A profile as one page that opens from disk: its data, its style and its script in one HTML file.
//!
//! ```text
//! profile.rs   stacks, threads and samples → section `profile`
//! pack.rs      sections → one packed block
//! modules.rs   js/*.js → one script
//! ```
//!
//! Code that has more data than a profile holds adds a [`Section`]; the part of the page that is made from it is a
//! module of the same name. Nothing is fetched, and the page's own policy forbids it.

mod modules;
mod pack;
mod page_rows;
mod profile;

pub(in crate::render) use modules::picture_script;
pub use pack::Section;
pub use profile::{PageRecording, category_number, sections};

use crate::bytes::escapes::escape_markup;
use crate::error::Result;
use crate::model::printable::readable;
use crate::render::palette;
use std::io::Write;

const PAGE: &str = include_str!("page.html");
const STYLE: &str =
    concat!(include_str!("page.css"), include_str!("time.css"), include_str!("flame.css"), include_str!("code.css"));

/// The content of a page.
#[derive(Debug)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// Its data.
    pub sections: Vec<Section>,
}

/// Writes it.
pub fn write(page: &Page, out: &mut dyn Write) -> Result<()> {
    // Each piece behind a mark begins with the mark's name: what is put in is never looked at for marks.
    let mut pieces = PAGE.split("{{");
    out.write_all(pieces.next().unwrap_or_default().as_bytes())?;
    for piece in pieces {
        let (mark, text) = piece.split_once("}}").unwrap_or(("", piece));
        match mark {
            "title" => out.write_all(escaped(&page.title).as_bytes())?,
            "generator" => out.write_all(concat!("jitgraft ", env!("CARGO_PKG_VERSION")).as_bytes())?,
            "style" => write!(out, "{STYLE}{}", palette::variables())?,
            "data" => pack::write(&page.sections, out)?,
            _ => out.write_all(modules::script().as_bytes())?,
        }
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// A name as text of HTML.
fn escaped(text: &str) -> String {
    escape_markup(readable(text.as_bytes()).chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_text_and_no_mark_is_left() {
        let title = "</title><script>{{data}}\u{202e}".to_owned();
        let mut html = Vec::new();
        write(&Page { title, sections: vec![] }, &mut html).unwrap();
        let html = String::from_utf8(html).unwrap();
        assert!(html.contains("<title>&lt;/title&gt;&lt;script&gt;{{data}}\\u{202e}</title>"));
        for (mark, left) in [("{{title}}", 0), ("{{style}}", 0), ("{{script}}", 0), ("{{data}}", 1)] {
            assert_eq!(html.matches(mark).count(), left, "{mark}");
        }
    }
}
