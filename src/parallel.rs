//! The only place that starts threads. It offers an ordered parallel map over items in memory ([`Pool::map`]) and over
//! a stream, such as the blocks of an input ([`Pool::stream_with`]). Results come back in the order of the items, so
//! outputs don't depend on the number of threads.

use crate::error::Result;
use rayon::prelude::*;
use rustix::process::{Resource, getrlimit};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError, mpsc};

/// The worker threads of a job.
#[derive(Debug)]
pub struct Pool {
    /// `None` if the calling thread does all the work.
    rayon: Option<rayon::ThreadPool>,
}

impl Pool {
    /// Starts `threads` workers; `None` means one for each CPU that this process may use. If the system doesn't allow
    /// that many threads (`ulimit -u`, `ulimit -v`, `pids.max` of a control group), there are fewer.
    pub fn new(threads: Option<NonZeroUsize>) -> Result<Self> {
        /// The maximum number of threads per CPU. More would only wait for each other and for their own start.
        const PER_PROCESSOR: usize = 8;
        /// Up to this many threads are always allowed, so that tests can show that results don't depend on their
        /// number.
        const FEW: usize = 64;
        let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let max_threads = cpus.saturating_mul(PER_PROCESSOR).max(FEW);
        let mut threads = threads.map_or(cpus, NonZeroUsize::get).min(max_threads);
        // If the system doesn't allow so many threads, try with half as many, and so on.
        while threads > 1 {
            if let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
                return Ok(Self { rayon: Some(pool) });
            }
            threads /= 2;
        }
        Ok(Self { rayon: None })
    }

    /// The number of workers.
    pub fn threads(&self) -> usize {
        self.rayon.as_ref().map_or(1, rayon::ThreadPool::current_num_threads)
    }

    /// Applies `f` to all items in parallel. The results are in the order of the items.
    pub fn map<T: Send, O: Send>(&self, items: Vec<T>, f: impl Fn(T) -> O + Sync + Send) -> Vec<O> {
        match &self.rayon {
            Some(rayon) if items.len() > 1 => rayon.install(|| items.into_par_iter().map(f).collect()),
            _ => items.into_iter().map(f).collect(),
        }
    }

    /// Runs `f` inside the pool, so that [`join`] and the sort functions below use its threads.
    pub fn install<O: Send>(&self, f: impl FnOnce() -> O + Send) -> O {
        match &self.rayon {
            Some(rayon) => rayon.install(f),
            None => f(),
        }
    }

    /// Folds the items in parallel into several states, which are created by `state`, and returns these states for the
    /// caller to combine. There are no more of them than workers. Which item goes to which state isn't determined, so
    /// the combined result must not depend on that.
    pub fn fold<T: Send, S: Send>(
        &self,
        items: impl Iterator<Item = T> + Send,
        state: impl Fn() -> S + Sync,
        f: impl Fn(S, T) -> S + Sync,
    ) -> Vec<S> {
        // The states that no worker is using at the moment.
        let idle_states: Mutex<Vec<S>> = Mutex::default();
        // The lock is only poisoned if another worker panicked. The scope will propagate the panic.
        let lock = || idle_states.lock().unwrap_or_else(PoisonError::into_inner);
        let add = |item: T| {
            let idle_state = lock().pop();
            let folded = f(idle_state.unwrap_or_else(&state), item);
            lock().push(folded);
        };
        self.each(items, add, |()| {});
        idle_states.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies `f` to a stream of items in parallel, and passes each result to `sink`, in the order of the items, as
    /// soon as it and all previous ones are ready. At most twice as many items as workers are in progress. If `sink`
    /// returns an error, no further item is taken.
    pub fn stream<T: Send, O: Send>(
        &self,
        items: impl Iterator<Item = T> + Send,
        f: impl Fn(T) -> O + Sync,
        sink: impl FnMut(O) -> Result<()>,
    ) -> Result<()> {
        self.stream_with(items, || (), |(), item| f(item), sink)
    }

    /// Applies `f` to items in parallel, and passes each result to `sink`, in the order of the items. Like
    /// [`Self::stream`], but for a sink that can't fail.
    pub fn each<T: Send, O: Send>(
        &self,
        items: impl Iterator<Item = T> + Send,
        f: impl Fn(T) -> O + Sync,
        mut sink: impl FnMut(O),
    ) {
        let sink = |result| {
            sink(result);
            Ok(())
        };
        // `stream` only fails if the sink fails, and this sink never does.
        let _ = self.stream(items, f, sink);
    }

    /// Applies `f` to items in parallel, and passes each result to `sink`, in the order of the items (see
    /// [`Self::stream`]). Each worker has a state, created by `state`, that `f` can use for all items of this worker.
    /// All streams are driven by this function.
    pub fn stream_with<T: Send, O: Send, S>(
        &self,
        items: impl Iterator<Item = T> + Send,
        state: impl Fn() -> S + Sync,
        f: impl Fn(&mut S, T) -> O + Sync,
        sink: impl FnMut(O) -> Result<()>,
    ) -> Result<()> {
        // With one thread, no worker is needed.
        if self.threads() == 1 {
            let mut state = state();
            return items.map(|item| f(&mut state, item)).try_for_each(sink);
        }
        // For each item, in the order of the items, a worker sends a new channel through this one, and later the item's
        // result through the new channel. The capacity of this channel limits how many items are in progress.
        let (channel_sender, channel_receiver) = mpsc::sync_channel(self.threads());
        let source = WorkSource(Mutex::new(Some((items, channel_sender))));
        let work = || {
            let mut state = state();
            while let Some((item, reply)) = source.next() {
                // Sending only fails after the sink has failed. Nobody needs the result then.
                let _ = reply.send(f(&mut state, item));
            }
        };
        std::thread::scope(|scope| {
            let mut started = 0;
            while started < self.threads() && std::thread::Builder::new().spawn_scoped(scope, work).is_ok() {
                started += 1;
            }
            if started > 0 {
                // A worker that panics sends no result. The scope will propagate the panic.
                let mut results = channel_receiver.into_iter().filter_map(|channel| channel.recv().ok());
                return results.try_for_each(sink);
            }
            // The system doesn't allow another thread, so this one does all the work.
            let mut state = state();
            source.end().into_iter().flatten().map(|item| f(&mut state, item)).try_for_each(sink)
        })
    }
}

/// The items of a stream that are still to be taken, and the way to the consumer of the results; `None` after the last
/// item. A worker that takes an item sends the consumer a channel, through which the result will follow. So the
/// consumer gets these channels in the order of the items. Workers take items themselves, because the data that was
/// just read is then in their CPU's cache.
struct WorkSource<I, O>(Mutex<Option<(I, mpsc::SyncSender<mpsc::Receiver<O>>)>>);

impl<I: Iterator, O> WorkSource<I, O> {
    /// Returns the remaining items. Workers get none after this.
    fn end(&self) -> Option<I> {
        let mut source = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        source.take().map(|(items, _)| items)
    }

    /// Takes the next item, and the channel for its result. Results are read in the order in which items are taken.
    fn next(&self) -> Option<(I::Item, mpsc::SyncSender<O>)> {
        let mut source = match self.0.lock() {
            Ok(source) => source,
            // Another worker panicked while taking an item. The scope will propagate the panic, so stop here.
            Err(poisoned) => {
                *poisoned.into_inner() = None;
                return None;
            }
        };
        let (items, channel_sender) = source.as_mut()?;
        let next = items.next().and_then(|item| {
            let (result_sender, result_receiver) = mpsc::sync_channel(1);
            // Fails if the consumer has stopped, because the sink has failed.
            channel_sender.send(result_receiver).ok()?;
            Some((item, result_sender))
        });
        // After the last item, dropping the sender tells the consumer that no result will follow.
        if next.is_none() {
            *source = None;
        }
        next
    }
}

/// The stack size, in bytes, that is enough for any input.
const STACK: usize = 8 << 20;

/// Runs `f` on this thread or, if its stack is smaller than any input may need (`ulimit -s`), on a new thread with a
/// larger one.
pub fn with_enough_stack<O: Send>(f: impl Fn() -> O + Sync) -> O {
    let is_large_enough = getrlimit(Resource::Stack).current.is_none_or(|limit| limit >= STACK as u64);
    if is_large_enough {
        // If the address space is limited (`ulimit -v`), there may be no memory left when the stack grows later.
        if getrlimit(Resource::As).current.is_some() {
            use_stack_early();
        }
        return f();
    }
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("main".to_owned()).stack_size(STACK).spawn_scoped(scope, &f);
        thread.ok().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    // If no thread can be started, hope that the stack is large enough.
    done.unwrap_or_else(f)
}

/// Lets the stack of the first thread grow to what every run needs, while running out of memory can still be reported.
/// A stack grows when its pages are first used. If the address space is limited (`ulimit -v`) and has no room left by
/// then, the kernel ends the program with SIGSEGV, without a message.
fn use_stack_early() {
    /// The bytes of stack that every run needs. In builds without optimization, parsing the command line takes more
    /// than half of them.
    const NEEDED: usize = 768 << 10;
    /// Calls itself until the stack has grown by `NEEDED` from the address `start`.
    #[inline(never)]
    fn use_stack(start: usize) {
        let used = [0_u8; 4096];
        let address = black_box(&used).as_ptr().addr();
        if start.saturating_sub(address) < NEEDED {
            use_stack(start);
        }
        // The frame is still in use after the call, so that the call can't become a loop.
        black_box(&used);
    }
    // A probe: allocates as much memory as the stack is going to take (plus some more for the last frame), and frees it
    // again. If there isn't enough, the allocation fails, and the allocator ends the program with a message.
    drop(black_box(Vec::<u8>::with_capacity(NEEDED + (16 << 10))));
    let here = 0_u8;
    use_stack(std::ptr::from_ref(black_box(&here)).addr());
}

/// Runs both closures, in parallel if this is called inside a pool with a free worker.
pub fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    match rayon::current_thread_index() {
        Some(_) => rayon::join(a, b),
        // Outside of a pool, rayon would start a global pool that nobody asked for.
        None => (a(), b()),
    }
}

/// Sorts by a key, in parallel if this is called inside a pool. Equal elements keep their order.
pub fn sort_by_key<T: Send, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K + Sync) {
    match rayon::current_thread_index() {
        Some(_) => list.par_sort_by_key(key),
        None => list.sort_by_key(key),
    }
}

/// Sorts by a key, in parallel if this is called inside a pool. Equal elements may change their order.
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
