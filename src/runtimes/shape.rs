//! The shapes of names, and the tiers that they show.

use crate::model::tier::Tier;

/// The shape of a name.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// It is this.
    Is(&'static str),
    /// It begins with this.
    Starts(&'static str),
    /// It ends in this.
    Ends(&'static str),
    /// It begins with the first and ends in the second.
    Around(&'static str, &'static str),
    /// It holds this.
    Holds(&'static str),
    /// It begins with one of the first, and the second follows that.
    After(&'static [&'static str], &'static str),
}

impl Shape {
    /// True if that name looks so.
    pub(super) fn fits(self, name: &[u8]) -> bool {
        match self {
            Self::Is(whole) => name == whole.as_bytes(),
            Self::Starts(start) => name.starts_with(start.as_bytes()),
            Self::Ends(end) => name.ends_with(end.as_bytes()),
            Self::Around(start, end) => {
                name.strip_prefix(start.as_bytes()).is_some_and(|rest| rest.ends_with(end.as_bytes()))
            }
            Self::Holds(part) => memchr::memmem::find(name, part.as_bytes()).is_some(),
            Self::After(starts, mark) => starts
                .iter()
                .filter_map(|start| name.strip_prefix(start.as_bytes()))
                .any(|rest| rest.starts_with(mark.as_bytes())),
        }
    }
}

/// Names of these shapes are of this tier.
pub type TierRule = (Tier, &'static [Shape]);

/// The tier that the first of the rules shows that fits.
pub(super) fn told(rules: &[TierRule], name: &[u8]) -> Option<Tier> {
    rules.iter().find(|(_, shapes)| shapes.iter().any(|shape| shape.fits(name))).map(|(tier, _)| *tier)
}
