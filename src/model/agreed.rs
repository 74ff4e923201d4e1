//! A fact that several state, and may state differently.

/// The value of all that state one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Agreed<T> {
    /// Nobody stated it.
    #[default]
    Unstated,
    /// All stated this.
    Same(T),
    /// Two stated different values.
    Several,
}

impl<T: PartialEq> Agreed<T> {
    /// Takes what one more states; `None` if nothing.
    pub fn add(&mut self, stated: Option<T>) {
        self.merge(stated.map_or(Self::Unstated, Self::Same));
    }

    /// Takes what others agreed on.
    pub fn merge(&mut self, other: Self) {
        match (&*self, &other) {
            (Self::Same(one), Self::Same(another)) if one != another => *self = Self::Several,
            (Self::Same(_), Self::Several) | (Self::Unstated, _) => *self = other,
            (Self::Same(_), Self::Same(_) | Self::Unstated) | (Self::Several, _) => {}
        }
    }

    /// The value, if all agree.
    pub fn into_option(self) -> Option<T> {
        match self {
            Self::Same(value) => Some(value),
            Self::Unstated | Self::Several => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_all_state_alike_is_a_value() {
        let of = |stated: &[Option<u8>]| {
            let mut agreed = Agreed::default();
            stated.iter().for_each(|one| agreed.add(*one));
            agreed
        };
        assert_eq!(of(&[None, Some(1), None, Some(1)]), Agreed::Same(1));
        assert_eq!(of(&[Some(1), Some(2), Some(1), None]), Agreed::Several);
        assert_eq!((of(&[]).into_option(), of(&[Some(1)]).into_option()), (None, Some(1)));
        let mut one = of(&[Some(1)]);
        one.merge(Agreed::Several);
        assert_eq!(one.into_option(), None);
    }
}
