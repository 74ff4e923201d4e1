//! Writes a profile as a page that can be opened from disk: one HTML file with the data, the style and the script.
//!
//! ```text
//! profile.rs   stacks, threads and samples → section `profile`
//! pack.rs      sections → one packed block
//! modules.rs   js/*.js → one script
//! ```
//!
//! A command that has more data than a profile holds adds a [`Section`] to the page. The script module of the same name
//! shows that section. The page loads nothing from outside; its own content security policy forbids that.

mod modules;
mod pack;
mod page_rows;
mod profile;

pub(super) use modules::picture_script;
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
    /// The page's title.
    pub title: String,
    /// The page's data.
    pub sections: Vec<Section>,
}

/// Writes a page as HTML.
pub fn write(page: &Page, out: &mut dyn Write) -> Result<()> {
    // `{{name}}` in the template is a placeholder. The template is split at `{{` before anything is inserted, so that
    // `{{` in an inserted text isn't taken for one. Each piece except the first begins with a placeholder's name.
    let mut pieces = PAGE.split("{{");
    out.write_all(pieces.next().unwrap_or_default().as_bytes())?;
    for piece in pieces {
        let (placeholder, text) = piece.split_once("}}").unwrap_or(("", piece));
        match placeholder {
            "title" => out.write_all(escaped(&page.title).as_bytes())?,
            "generator" => out.write_all(concat!("jitgraft ", env!("CARGO_PKG_VERSION")).as_bytes())?,
            "style" => write!(out, "{STYLE}{}", palette::variables())?,
            "data" => pack::write(&page.sections, out)?,
            // The only other placeholder is `{{script}}`.
            _ => out.write_all(modules::script().as_bytes())?,
        }
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Escapes a text for HTML.
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
