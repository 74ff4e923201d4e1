//! Many short lists, such as the calls of each function: all in one, with where each begins. A list of lists would be an
//! allocation for each.

use std::ops::Index;

/// A list for each number from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Lists<T> {
    items: Vec<T>,
    /// The start of each list, and the end of the last one.
    starts: Vec<usize>,
}

impl<T: Copy> Lists<T> {
    /// A number of lists; items come with the number of theirs, and each list has them in the order in which they come.
    pub fn new(count: usize, items: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        let mut starts = vec![0; count + 1];
        for (list, _) in items.clone() {
            starts[list as usize + 1] += 1;
        }
        for list in 0..count {
            starts[list + 1] += starts[list];
        }
        let mut next = starts.clone();
        let Some((_, first)) = items.clone().next() else { return Self { items: Vec::new(), starts } };
        let mut sorted = vec![first; starts[count]];
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

    /// All items, with the number of their list.
    pub fn items(&self) -> impl Iterator<Item = (u32, T)> + Clone + '_ {
        (0..self.count()).flat_map(|list| self[list].iter().map(move |item| (list as u32, *item)))
    }

    /// All items, to be changed.
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
