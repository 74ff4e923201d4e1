//! Flame graphs as SVG: a page of our own, or, with [`Style::Inferno`], inferno's.
//!
//! The content (`drawing`, `difference`) comes out of a tree of labels or, for charts, of rows in order of time; `page`
//! puts it on a page. Colors show what sort of code a box is (`palette`). Equal inputs give equal bytes.

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
use crate::analysis::sorted_stacks::Runs;
use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::model::stacks::Profile;
use drawing::Drawing;
use std::io::Write;

/// Writes one event with the usual look.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let whole = WriteOptions { tidied: Tidied::Nothing, ..options.clone() };
    draw(profile, &whole, &Look::default(), out, &write_picture)
}

/// Draws one event. A picture that can be written piece by piece is left to `write`.
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

/// The picture of stacks that were summed by sorting them: [`Style::Page`], the roots first, of all stacks.
pub fn of_sorted(runs: &Runs, options: &WriteOptions, look: &Look) -> Result<Picture> {
    Ok(Picture::new(Drawing::of_sorted(runs, options, look)?, look))
}

/// The picture of `after`, colored by what is more and what is less than `before`.
pub fn difference(
    before: Side<'_>,
    after: Side<'_>,
    options: &WriteOptions,
    look: &Look,
    difference: Difference,
) -> Result<Picture> {
    Ok(Picture::new(Drawing::difference(before, after, options, look, difference)?, look))
}

/// Writes a picture, one piece after the other.
fn write_picture(picture: &Picture, out: &mut dyn Write) -> Result<()> {
    out.write_all(picture.head())?;
    picture.pieces().try_for_each(|piece| out.write_all(&picture.text(&piece)))?;
    Ok(out.write_all(picture.tail())?)
}

#[cfg(test)]
mod tests;
