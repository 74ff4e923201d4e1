//! Many short lists in one allocation, such as the callees of each function.

use std::ops::Index;

/// A fixed number of lists ([`count`](Self::count)), which are indexed from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Lists<T> {
    items: Vec<T>,
    /// Where each list starts in `items`, and where the last one ends.
    starts: Vec<usize>,
}

impl<T: Copy> Lists<T> {
    /// Builds `count` lists. Each of the `items` comes with the index of the list to which it is appended.
    pub fn new(count: usize, items: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        // Count the items of list N in element N + 1. The sum of all elements up to N is then where list N starts.
        let mut starts = vec![0; count + 1];
        for (list, _) in items.clone() {
            starts[list as usize + 1] += 1;
        }
        for list in 0..count {
            starts[list + 1] += starts[list];
        }
        // Where to put the next item of each list.
        let mut next = starts.clone();
        let Some((_, any_item)) = items.clone().next() else { return Self { items: Vec::new(), starts } };
        // `any_item` only fills the memory: the loop overwrites every element.
        let mut sorted = vec![any_item; starts[count]];
        for (list, item) in items {
            sorted[next[list as usize]] = item;
            next[list as usize] += 1;
        }
        Self { items: sorted, starts }
    }

    /// The number of lists.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// All items, list by list, each with the index of its list.
    pub fn items(&self) -> impl Iterator<Item = (u32, T)> + Clone + '_ {
        (0..self.count()).flat_map(|list| self[list].iter().map(move |item| (list as u32, *item)))
    }

    /// All items, list by list.
    pub fn items_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

impl<T> Index<usize> for Lists<T> {
    type Output = [T];

    fn index(&self, list: usize) -> &[T] {
        &self.items[self.starts[list]..self.starts[list + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_order_in_their_lists() {
        let items = [(2, 'a'), (0, 'b'), (2, 'c'), (3, 'd')];
        let mut lists = Lists::new(5, items.into_iter());
        let all: Vec<&[char]> = (0..lists.count()).map(|list| &lists[list]).collect();
        assert_eq!(all, [&['b'][..], &[], &['a', 'c'], &['d'], &[]]);
        lists.items_mut()[1..3].reverse();
        assert_eq!(lists.items().collect::<Vec<_>>(), [(0, 'b'), (2, 'c'), (2, 'a'), (3, 'd')]);
        let empty = Lists::<char>::new(2, std::iter::empty());
        assert_eq!((empty.count(), empty[0].len(), empty[1].len()), (2, 0, 0));
    }
}
