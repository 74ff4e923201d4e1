//! The only threads: an ordered map over things in memory, and one over a stream.
//!
//! Results come back in input order, so that output bytes do not depend on the number of threads.

use crate::error::Result;
use rayon::prelude::*;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError, mpsc};

/// The threads of one job.
#[derive(Debug)]
pub struct Pool {
    /// `None` if the calling thread does all the work itself.
    rayon: Option<rayon::ThreadPool>,
}

impl Pool {
    /// `threads` workers; `None` means one for each processor that this process may use. There are fewer if the system
    /// does not let this many start (`ulimit -u`, `ulimit -v`, a control group's `pids.max`).
    pub fn new(threads: Option<NonZeroUsize>) -> Result<Self> {
        /// More threads per processor only wait for each other, and for their own start.
        const PER_PROCESSOR: usize = 8;
        /// So many are always started if they are requested: results don't depend on them, and tests show it.
        const FEW: usize = 64;
        let here = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let most = here.saturating_mul(PER_PROCESSOR).max(FEW);
        let threads = threads.map_or(here, NonZeroUsize::get).min(most);
        let fewer =
            std::iter::successors(Some(threads), |threads| Some(threads / 2)).take_while(|threads| *threads > 1);
        let start = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok();
        Ok(Self { rayon: fewer.filter_map(start).next() })
    }

    /// The number of workers.
    pub fn threads(&self) -> usize {
        self.rayon.as_ref().map_or(1, rayon::ThreadPool::current_num_threads)
    }

    /// `f` of every item, in the items' order.
    pub fn map<T: Send, O: Send>(&self, items: Vec<T>, f: impl Fn(T) -> O + Sync + Send) -> Vec<O> {
        match &self.rayon {
            Some(rayon) if items.len() > 1 => rayon.install(|| items.into_par_iter().map(f).collect()),
            _ => items.into_iter().map(f).collect(),
        }
    }

    /// Runs `f` inside the pool, so that [`join`] and the sorts beside it use these threads.
    pub fn install<O: Send>(&self, f: impl FnOnce() -> O + Send) -> O {
        match &self.rayon {
            Some(rayon) => rayon.install(f),
            None => f(),
        }
    }

    /// What the workers find, each in a state of its own that it keeps from item to item. Which items a worker gets is not
    /// determined: the states must add up to the same, however the items are spread.
    pub fn fold<T: Send, S: Send>(
        &self,
        items: impl Iterator<Item = T> + Send,
        state: impl Fn() -> S + Sync + Send,
        f: impl Fn(S, T) -> S + Sync + Send,
    ) -> Vec<S> {
        match &self.rayon {
            Some(rayon) => rayon.install(|| items.par_bridge().fold(state, f).collect()),
            None => vec![items.fold(state(), f)],
        }
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

    /// The same for a caller that takes the results when it wants them: those that `take` leaves are not waited for.
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
        let work = || {
            let mut state = state();
            while let Some((item, reply)) = source.next() {
                // The receiver is gone only when the sink failed.
                let _ = reply.send(f(&mut state, item));
            }
        };
        std::thread::scope(|scope| {
            let start = |_: &usize| std::thread::Builder::new().spawn_scoped(scope, work).is_ok();
            // The system may not let all of them start.
            if (0..self.threads()).take_while(start).count() > 0 {
                return take(&mut ordered.into_iter().filter_map(|result| result.recv().ok()));
            }
            let mut state = state();
            take(&mut source.end().into_iter().flatten().map(|item| f(&mut state, item)))
        })
    }
}

/// The items of a stream, and where the places of their results are handed over in the items' order. Each worker
/// takes its next item itself: what was just read is still in its processor's cache.
struct WorkSource<I, O>(Mutex<Option<(I, mpsc::SyncSender<mpsc::Receiver<O>>)>>);

impl<I: Iterator, O> WorkSource<I, O> {
    /// The items that nobody has taken. No worker gets any after that.
    fn end(&self) -> Option<I> {
        let mut source = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        source.take().map(|(items, _)| items)
    }

    fn next(&self) -> Option<(I::Item, mpsc::SyncSender<O>)> {
        let mut source = match self.0.lock() {
            Ok(source) => source,
            // Another worker panicked in taking an item, which the scope will state: there are no more.
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

/// The stack that the work on the first thread may take: no input needs more.
const STACK: usize = 8 << 20;

/// Runs `f` on this thread if it may have as much stack as any work takes, else (`ulimit -s`) on one that has.
pub fn with_enough_stack<O: Send>(f: impl Fn() -> O + Sync) -> O {
    let granted = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
    if granted.is_none_or(|granted| granted >= STACK as u64) {
        return f();
    }
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("main".to_owned()).stack_size(STACK).spawn_scoped(scope, &f);
        thread.ok().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    // If no thread can start, the stack must suffice.
    done.unwrap_or_else(f)
}

/// Starts a thread that belongs to no job and ends with the process. False if the system lets no more threads start.
pub(crate) fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    const SMALL_STACK: usize = 128 << 10;
    std::thread::Builder::new().name(name.to_owned()).stack_size(SMALL_STACK).spawn(run).is_ok()
}

/// Runs both, side by side if a worker of the pool that this runs in is free.
pub fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    match rayon::current_thread_index() {
        Some(_) => rayon::join(a, b),
        // Outside of a pool rayon would start threads that nobody asked for.
        None => (a(), b()),
    }
}

/// Sorts by a key, side by side if this runs in a pool. Equal ones stay as they are.
pub fn sort_by_key<T: Send, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K + Sync) {
    match rayon::current_thread_index() {
        Some(_) => list.par_sort_by_key(key),
        None => list.sort_by_key(key),
    }
}

/// The same for lists in which equal ones cannot be distinguished.
pub fn sort_unstable_by_key<T: Send, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K + Sync) {
    match rayon::current_thread_index() {
        Some(_) => list.par_sort_unstable_by_key(key),
        None => list.sort_unstable_by_key(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

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
