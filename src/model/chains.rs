//! Call chains before they have names: prefix trees of places, outermost first.
//!
//! A sample costs one look at each frame that differs from the sample before; everything that is dear (symbols,
//! lines, spelling) is done later, once for each distinct place.

use super::interner::{self, Interner, id};
use super::prefix_tree::PrefixTree;
use crate::error::Result;
use std::hash::Hash;

id! {
    /// A chain: a node of the tree.
    ChainId,
    /// A distinct place.
    PlaceId
}

/// Chains of places, both numbered by first appearance.
#[derive(Debug, Clone)]
pub struct Chains<P> {
    places: Interner<P, PlaceId>,
    tree: PrefixTree<PlaceId>,
}

impl<P> Default for Chains<P> {
    fn default() -> Self {
        Self { places: Interner::default(), tree: PrefixTree::default() }
    }
}

impl<P: Copy + Eq + Hash> Chains<P> {
    /// The number of a place.
    pub fn place(&mut self, place: P) -> PlaceId {
        self.places.intern(place)
    }

    /// The chain that continues `caller` (`None`: the outermost frame) with a callee.
    pub fn chain(&mut self, caller: Option<ChainId>, callee: PlaceId) -> ChainId {
        ChainId(self.tree.child(caller.map(|caller| caller.0), callee))
    }

    /// Chains that continue `caller`, each with its innermost place, the newest ones: not all if there are many.
    pub fn newest(&self, caller: Option<ChainId>) -> impl Iterator<Item = (ChainId, PlaceId)> + '_ {
        self.tree.newest(caller.map(|caller| caller.0)).map(|(chain, place)| (ChainId(chain), place))
    }

    /// All places; the position is the number.
    pub fn places(&self) -> &[P] {
        self.places.items()
    }

    /// True if everything got a number of its own. Check it after chains were read and before they are used.
    pub fn check(&self) -> Result<()> {
        match (self.places.is_full(), self.tree.is_full()) {
            (false, false) => Ok(()),
            (true, _) => Err(interner::full("places in code")),
            (false, true) => Err(interner::full("stacks")),
        }
    }

    /// The number of chains.
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// True if it is empty.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// All chains: caller's chain (always a smaller number) and innermost place; the position is the number.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (Option<ChainId>, PlaceId)> + DoubleEndedIterator + '_ {
        self.tree.iter().map(|(caller, place)| (caller.map(ChainId), place))
    }

    /// The same from a number on.
    pub fn nodes_since(
        &self,
        first: usize,
    ) -> impl ExactSizeIterator<Item = (Option<ChainId>, PlaceId)> + DoubleEndedIterator + '_ {
        self.tree.since(first).map(|(caller, place)| (caller.map(ChainId), place))
    }

    /// The places of a chain, innermost first.
    pub fn up(&self, chain: Option<ChainId>) -> impl Iterator<Item = PlaceId> + '_ {
        let mut next = chain.map(|chain| chain.0);
        std::iter::from_fn(move || {
            let (caller, place) = self.tree.get(next?);
            next = caller;
            Some(place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(chains: &mut Chains<char>, outermost_first: &str) -> ChainId {
        let mut chain = None;
        for place in outermost_first.chars() {
            let place = chains.place(place);
            chain = Some(chains.chain(chain, place));
        }
        chain.unwrap()
    }

    #[test]
    fn a_value_too_large_to_number_is_an_error() {
        let mut chains = Chains { places: Interner::of_most(2), ..Chains::default() };
        push(&mut chains, "ab");
        chains.check().unwrap();
        push(&mut chains, "abc");
        assert!(chains.check().unwrap_err().to_string().contains("different places"));
    }
}
