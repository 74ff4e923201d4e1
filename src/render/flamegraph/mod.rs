//! Draws flame graphs as SVG, on our own page or (with [`Style::Inferno`]) on inferno's.
//!
//! `drawing` and `difference` lay out the boxes. They start from a call tree or, for flame charts, from samples in
//! order of time. `page` writes the page around the boxes, and `palette` colors them by the kind of code. Equal inputs
//! give the same bytes.

mod amount;
mod decimal;
mod difference;
mod drawing;
mod fit;
mod inferno;
mod look;
mod page;

pub use self::inferno::draw_difference as draw_infernos_difference;
pub use difference::Side;
pub use fit::Cut;
pub use look::{Difference, Look, Style};
pub use page::{Picture, Piece};

use crate::analysis::label::Tidied;
use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::model::stacks::Profile;
use drawing::Drawing;
use std::io::Write;

/// Writes a flame graph of one event with the default look.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let whole = WriteOptions { tidied: Tidied::Nothing, ..options.clone() };
    draw(profile, &whole, &Look::default(), out, &write_picture)
}

/// Draws one event. A picture on our own page is passed to `write`; inferno's page is written directly to `out`.
pub fn draw(
    profile: &Profile,
    options: &WriteOptions,
    look: &Look,
    out: &mut dyn Write,
    write: &dyn Fn(&Picture, &mut dyn Write) -> Result<()>,
) -> Result<()> {
    match (look.style, look.flame_chart) {
        (Style::Inferno, _) => inferno::draw(profile, options, look, out),
        (Style::Page, true) => write(&Picture::new(Drawing::chart(profile, options, look)?, look), out),
        (Style::Page, false) => write(&Picture::new(Drawing::flame(profile, options, look)?, look), out),
    }
}

/// Draws `after`, with colors that show where it has more or less than `before`.
pub fn difference(
    before: Side<'_>,
    after: Side<'_>,
    options: &WriteOptions,
    look: &Look,
    difference: Difference,
) -> Result<Picture> {
    Ok(Picture::new(Drawing::difference(before, after, options, look, difference)?, look))
}

/// Writes a picture piece by piece.
fn write_picture(picture: &Picture, out: &mut dyn Write) -> Result<()> {
    out.write_all(picture.head())?;
    picture.pieces().try_for_each(|piece| out.write_all(&picture.text(&piece)))?;
    Ok(out.write_all(picture.tail())?)
}

#[cfg(test)]
mod tests;
