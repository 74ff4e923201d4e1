//! Call chains before symbolization: a prefix tree of code locations, outermost frame first.
//!
//! Adding a sample costs one lookup per frame that differs from the previous sample. Everything expensive (symbols,
//! source lines, spelling of names) happens later, once per distinct location.

use super::interner::{self, Interner, id};
use super::prefix_tree::PrefixTree;
use crate::error::Result;
use std::hash::Hash;

id! {
    /// A call chain: a node of the prefix tree.
    ChainId,
    /// A distinct code location.
    PlaceId
}

/// Call chains whose locations have the type `P`. Chains and locations get IDs in order of first appearance.
#[derive(Debug, Clone)]
pub struct Chains<P> {
    places: Interner<P, PlaceId>,
    tree: PrefixTree<PlaceId>,
}

/// What a worker has added to its chains since its previous part. Like [`Part`](super::stacks::Part), but for call
/// chains before symbolization.
#[derive(Debug)]
pub struct ChainsPart<P> {
    places: Vec<P>,
    /// For each chain, the chain of its caller and its innermost location.
    chains: Vec<(Option<ChainId>, PlaceId)>,
}

/// How many of a worker's locations and chains have been copied to parts so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TakenChains {
    places: usize,
    chains: usize,
}

/// For each ID in a worker's chains, the ID of the same entry in the merged chains.
#[derive(Debug, Default)]
pub struct RenumberedChains {
    /// The merged IDs of locations.
    pub places: Vec<PlaceId>,
    /// The merged IDs of chains.
    pub chains: Vec<ChainId>,
}

impl<P> Default for Chains<P> {
    fn default() -> Self {
        Self { places: Interner::default(), tree: PrefixTree::default() }
    }
}

impl<P: Copy + Eq + Hash> Chains<P> {
    /// Returns the ID of a location, and adds the location if it is new.
    pub fn place(&mut self, place: P) -> PlaceId {
        self.places.intern(place)
    }

    /// Returns the ID of the chain of `caller` (`None`: the empty chain) extended by one callee. Adds the chain if it
    /// is new.
    pub fn chain(&mut self, caller: Option<ChainId>, callee: PlaceId) -> ChainId {
        ChainId(self.tree.child(caller.map(|caller| caller.0), callee))
    }

    /// All locations, indexed by ID.
    pub fn places(&self) -> &[P] {
        self.places.items()
    }

    /// Fails if the input had more chains or locations than there are IDs. Call it after reading and before using the
    /// chains.
    pub fn check(&self) -> Result<()> {
        match (self.places.is_full(), self.tree.is_full()) {
            (false, false) => Ok(()),
            (true, _) => Err(interner::full("code locations")),
            (false, true) => Err(interner::full("stacks")),
        }
    }

    /// The number of chains.
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// True if there are no chains.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// All chains in the order of their IDs: for each, the chain of its caller, whose ID is always smaller, and its
    /// innermost location.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (Option<ChainId>, PlaceId)> + DoubleEndedIterator + '_ {
        self.tree.iter().map(|(caller, place)| (caller.map(ChainId), place))
    }

    /// Copies the locations and chains that are new since the previous call with the same `taken`.
    pub fn take_part(&self, taken: &mut TakenChains) -> ChainsPart<P> {
        let part = ChainsPart {
            places: self.places()[taken.places..].to_vec(),
            chains: self.tree.since(taken.chains).map(|(caller, place)| (caller.map(ChainId), place)).collect(),
        };
        *taken = TakenChains { places: self.places().len(), chains: self.len() };
        part
    }

    /// Adds a worker's part. `merged_ids` translates that worker's IDs to those of the merged chains. It must have the
    /// entries of the worker's earlier parts, and gets those of this part.
    pub fn add_part(&mut self, part: &ChainsPart<P>, merged_ids: &mut RenumberedChains) {
        merged_ids.places.extend(part.places.iter().map(|&place| self.place(place)));
        merged_ids.chains.reserve(part.chains.len());
        for &(caller, place) in &part.chains {
            let caller = caller.map(|caller| merged_ids.chains[caller.0 as usize]);
            merged_ids.chains.push(self.chain(caller, merged_ids.places[place.0 as usize]));
        }
    }

    /// The locations of a chain, innermost first.
    pub fn places_up(&self, chain: Option<ChainId>) -> impl Iterator<Item = PlaceId> + '_ {
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
        let mut chains = Chains { places: Interner::with_limit(2), ..Chains::default() };
        push(&mut chains, "ab");
        chains.check().unwrap();
        push(&mut chains, "abc");
        assert!(chains.check().unwrap_err().to_string().contains("different code locations"));
    }
}
