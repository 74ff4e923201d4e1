//! Draws flame graphs as SVG, on our own page or (with [`Style::Inferno`]) on inferno's.
//!
//! ```text
//! drawing, difference   profile → Drawing: boxes with names and colors, title, legend
//! page, layout          Drawing → Picture: the static picture, which any program shows
//! data                  Drawing → the same boxes for the picture's script (viewer/js/picture.js)
//! ```
//!
//! The picture's script shares its modules with the page of `view`: once a browser runs it, it lays out, labels and
//! colors the boxes by itself. Equal inputs give the same bytes.

mod amount;
mod data;
mod decimal;
mod difference;
mod drawing;
mod fit;
#[cfg(feature = "cli")]
mod inferno;
mod layout;
mod look;
mod page;

#[cfg(feature = "cli")]
pub use self::inferno::{draw as draw_inferno, draw_difference as draw_inferno_difference};
pub use difference::Side;
pub use fit::Cut;
pub use look::{Difference, Look, Style};
pub use page::{Picture, Piece};

use crate::analysis::label::Shortening;
use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::model::stacks::Profile;
use drawing::Drawing;
use std::io::Write;

/// Writes a flame graph of one event with the default look. Names of functions are complete.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let whole = WriteOptions { shortening: Shortening::Nothing, ..options.clone() };
    let picture = draw(profile, &whole, &Look::default())?;
    out.write_all(picture.head())?;
    for piece in picture.pieces() {
        out.write_all(&picture.text(&piece))?;
    }
    Ok(out.write_all(picture.tail())?)
}

/// Draws one event on our own page: as a chart over time if the look says so, otherwise as a flame graph.
pub fn draw(profile: &Profile, options: &WriteOptions, look: &Look) -> Result<Picture> {
    let drawing = match look.flame_chart {
        true => Drawing::chart(profile, options, look)?,
        false => Drawing::flame(profile, options, look)?,
    };
    Ok(Picture::new(drawing, look))
}

/// Draws the flame graph of `after`. Colors show which functions have more or less weight than in `before`.
pub fn draw_difference(
    before: Side<'_>,
    after: Side<'_>,
    options: &WriteOptions,
    look: &Look,
    difference: Difference,
) -> Result<Picture> {
    Ok(Picture::new(Drawing::difference(before, after, options, look, difference)?, look))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_profile_is_an_error_not_a_picture() {
        for flame_chart in [false, true] {
            let look = Look { flame_chart, ..Look::default() };
            let options = WriteOptions::default();
            let page = draw(&Profile::new(), &options, &look).unwrap_err();
            assert!(page.to_string().contains("no samples to draw"));
            #[cfg(feature = "cli")]
            {
                let inferno = draw_inferno(&Profile::new(), &options, &look, &mut Vec::new()).unwrap_err();
                assert!(inferno.to_string().contains("no samples to draw"));
            }
        }
    }
}
