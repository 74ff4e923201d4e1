//! The only threads: an ordered map over things in memory, and one over a stream.
//!
//! Results come back in input order, so that output bytes do not depend on the number of threads.

use crate::error::{Error, Result};
use rayon::prelude::*;
use std::num::NonZeroUsize;
use std::sync::{Mutex, mpsc};

/// The threads of one job.
#[derive(Debug)]
pub struct Pool {
    rayon: rayon::ThreadPool,
    threads: NonZeroUsize,
}

impl Pool {
    /// `threads` workers; `None` means one for each processor that this process may use.
    pub fn new(threads: Option<NonZeroUsize>) -> Result<Self> {
        let threads = threads.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
        let built = rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build();
        let rayon = built.map_err(|error| Error::new("cannot start worker threads").because(error))?;
        Ok(Self { rayon, threads })
    }

    /// How many workers there are.
    pub fn threads(&self) -> usize {
        self.threads.get()
    }

    /// `f` of every item, in the items' order.
    pub fn map<T: Send, O: Send>(&self, items: Vec<T>, f: impl Fn(T) -> O + Sync + Send) -> Vec<O> {
        if self.threads() == 1 || items.len() < 2 {
            return items.into_iter().map(f).collect();
        }
        self.rayon.install(|| items.into_par_iter().map(f).collect())
    }

    /// Runs `f` inside the pool, so that rayon's own parallel sorts and joins use these threads.
    pub fn install<O: Send>(&self, f: impl FnOnce() -> O + Send) -> O {
        self.rayon.install(f)
    }

    /// Streams: takes items one by one, runs `f` on the workers, and gives each result to `sink` in the items'
    /// order as soon as it and all before it are there. At most twice the number of workers are under way.
    /// The first error of `sink` ends it: no further item is taken.
    pub fn stream<T: Send, O: Send>(
        &self,
        items: impl Iterator<Item = T> + Send,
        f: impl Fn(T) -> O + Sync,
        sink: impl FnMut(O) -> Result<()>,
    ) -> Result<()> {
        self.stream_with(items, || (), |(), item| f(item), sink)
    }

    /// The same with a state for each worker, which it keeps from item to item.
    pub fn stream_with<T: Send, O: Send, S>(
        &self,
        items: impl Iterator<Item = T> + Send,
        state: impl Fn() -> S + Sync,
        f: impl Fn(&mut S, T) -> O + Sync,
        mut sink: impl FnMut(O) -> Result<()>,
    ) -> Result<()> {
        self.ordered_with(items, state, f, |results| {
            for result in results {
                sink(result)?;
            }
            Ok(())
        })
    }

    /// Streams to a sink that never fails.
    pub fn each<T: Send, O: Send>(
        &self,
        items: impl Iterator<Item = T> + Send,
        f: impl Fn(T) -> O + Sync,
        sink: impl FnMut(O),
    ) {
        self.ordered(items, f, |results| results.for_each(sink));
    }

    /// The same for who takes the results when it wants them: those that `take` leaves are not waited for.
    pub fn ordered<T: Send, O: Send, R>(
        &self,
        items: impl Iterator<Item = T> + Send,
        f: impl Fn(T) -> O + Sync,
        take: impl FnOnce(&mut dyn Iterator<Item = O>) -> R,
    ) -> R {
        self.ordered_with(items, || (), |(), item| f(item), take)
    }

    fn ordered_with<T: Send, O: Send, S, R>(
        &self,
        items: impl Iterator<Item = T> + Send,
        state: impl Fn() -> S + Sync,
        f: impl Fn(&mut S, T) -> O + Sync,
        take: impl FnOnce(&mut dyn Iterator<Item = O>) -> R,
    ) -> R {
        if self.threads() == 1 {
            let mut state = state();
            return take(&mut items.map(|item| f(&mut state, item)));
        }
        let (orders, ordered) = mpsc::sync_channel(self.threads());
        let source = WorkSource(Mutex::new(Some((items, orders))));
        std::thread::scope(|scope| {
            for _ in 0..self.threads() {
                scope.spawn(|| {
                    let mut state = state();
                    while let Some((item, reply)) = source.next() {
                        // The receiver is gone only when the sink failed.
                        let _ = reply.send(f(&mut state, item));
                    }
                });
            }
            take(&mut ordered.into_iter().filter_map(|result| result.recv().ok()))
        })
    }
}

/// The items of a stream, and where the places of their results are handed over in the items' order. Each worker
/// takes its next item itself: what was just read is still in its processor's cache.
struct WorkSource<I, O>(Mutex<Option<(I, mpsc::SyncSender<mpsc::Receiver<O>>)>>);

impl<I: Iterator, O> WorkSource<I, O> {
    fn next(&self) -> Option<(I::Item, mpsc::SyncSender<O>)> {
        let mut source = match self.0.lock() {
            Ok(source) => source,
            // Another worker panicked in taking an item, which the scope will say: there are no more.
            Err(poisoned) => {
                *poisoned.into_inner() = None;
                return None;
            }
        };
        let (items, orders) = source.as_mut()?;
        let next = items.next().and_then(|item| {
            let (reply, result) = mpsc::sync_channel(1);
            orders.send(result).ok()?;
            Some((item, reply))
        });
        if next.is_none() {
            *source = None;
        }
        next
    }
}

/// Runs both, side by side if a worker of the pool that this runs in is free.
pub fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    match rayon::current_thread_index() {
        Some(_) => rayon::join(a, b),
        // Outside of a pool rayon would start threads that nobody asked for.
        None => (a(), b()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(threads: usize) -> Pool {
        Pool::new(NonZeroUsize::new(threads)).unwrap()
    }

    #[test]
    fn results_keep_the_order_of_the_items() {
        for threads in [1, 2, 7] {
            let mut seen = Vec::new();
            let slow_first = |n: u64| {
                std::thread::sleep(std::time::Duration::from_micros((100 - n) * 10));
                n * n
            };
            pool(threads)
                .stream(0..100, slow_first, |n| {
                    seen.push(n);
                    Ok(())
                })
                .unwrap();
            assert_eq!(seen, (0..100).map(|n| n * n).collect::<Vec<_>>());
            assert_eq!(pool(threads).map((0..100).collect(), |n: u64| n + 1), (1..101).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_worker_keeps_its_state() {
        for threads in [1, 3] {
            let mut seen = Vec::new();
            let count = |so_far: &mut u32, n: u32| {
                *so_far += 1;
                (n, *so_far)
            };
            let sink = |pair| {
                seen.push(pair);
                Ok(())
            };
            pool(threads).stream_with(0..100, || 0, count, sink).unwrap();
            assert_eq!(seen.iter().map(|&(n, _)| n).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
            let of_one = seen.iter().filter(|(_, count)| *count == 1).count();
            assert!((1..=threads).contains(&of_one), "{of_one} states of {threads} workers");
        }
    }

    #[test]
    fn a_failing_sink_ends_an_endless_stream() {
        let mut left = 10;
        let result = pool(3).stream(
            0..,
            |n: u64| n,
            |_| {
                left -= 1;
                if left == 0 { Err(Error::new("full")) } else { Ok(()) }
            },
        );
        assert_eq!(result.unwrap_err().to_string(), "full");
    }
}
