//! Handles signals: one thread waits for them, so that ordinary code can respond.
//!
//! A signal that ends the program first removes what exists under a temporary name. While `record` waits for the
//! program that it started, signals go to that program instead. Signals that were ignored when jitgraft started
//! (nohup(1)) stay ignored.

use super::temporary_name;
use super::typed::text_of_system;
use crate::parallel;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR2, SIGXFSZ};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;
use signal_hook::low_level::emulate_default_handler;
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};

/// Signals that end a program.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Signals that are passed on to a started program: those that end a program, or make perf write a snapshot.
const PASSED_ON: [i32; 5] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2];

/// The `si_code` of a signal that the kernel sent, such as Ctrl-C (asm-generic/siginfo.h).
const SI_KERNEL: i32 = 0x80;

/// What happens to a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Receiver {
    /// The signal ends this program.
    Own,
    /// A program is about to be started. The last signal is held back for it.
    Starting(Option<i32>),
    /// The signal is passed on to this started program.
    Child(Pid),
}

static RECEIVER: Mutex<Receiver> = Mutex::new(Receiver::Own);

fn receiver() -> MutexGuard<'static, Receiver> {
    RECEIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, a signal that ends the program first removes temporary names. Exceeding the file size limit (`ulimit
/// -f`) becomes an error when writing, instead of silently ending the program.
pub fn watch_signals() {
    // Because the signal is handled, write(2) fails with EFBIG. Started programs get the default action back.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    claim_stack();
    watch("signals", &ENDING);
}

/// Makes the kernel map part of this thread's stack now. If the address space is limited (`ulimit -v`) and used up, the
/// stack couldn't grow later, which would end the program silently.
fn claim_stack() {
    let stack = [0_u8; 256 << 10];
    std::hint::black_box(&stack);
}

/// Starts a thread that handles these signals until the process ends. If the thread can't be started, the signals keep
/// their default actions.
fn watch(thread_name: &str, signals: &[i32]) {
    let ignored = ignored_signals();
    let watched: Vec<i32> = signals.iter().copied().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect();
    let registered = Arc::new(Barrier::new(2));
    let on_thread = registered.clone();
    let is_started = parallel::start_thread(thread_name, move || {
        // Registered before the thread starts, so that no signal is lost in between.
        let signals = SignalsInfo::<WithRawSiginfo>::new(watched);
        on_thread.wait();
        let Ok(mut signals) = signals else { return };
        for info in signals.forever() {
            receive(info.si_signo, info.si_code == SI_KERNEL);
        }
    });
    if is_started {
        registered.wait();
    }
}

fn receive(signal: i32, is_from_kernel: bool) {
    let mut receiver = receiver();
    match &mut *receiver {
        Receiver::Own => {
            temporary_name::remove_all();
            let _ = emulate_default_handler(signal);
        }
        // A terminal sends its signals to the started program, too.
        Receiver::Starting(_) | Receiver::Child(_) if is_from_kernel => {}
        Receiver::Starting(last) => *last = Some(signal),
        Receiver::Child(child) => send(*child, signal),
    }
}

fn send(child: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        // Fails if the program has already ended.
        let _ = kill_process(child, signal);
    }
}

/// The signals that this process ignores, as a bit mask with the lowest bit for signal 1 (proc_pid_status(5)).
fn ignored_signals() -> u64 {
    let status = text_of_system(Path::new("/proc/self/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// While this exists, signals go to a started program and don't end this one.
#[derive(Debug)]
pub(super) struct PassedOn(());

impl PassedOn {
    /// Starts to hold back signals for a program that will be started next.
    pub(super) fn begin() -> Self {
        *receiver() = Receiver::Starting(None);
        watch("passed-signals", &PASSED_ON[ENDING.len()..]);
        Self(())
    }

    /// Passes signals on to this program, starting with the one held back. The program must not have been waited for
    /// yet.
    pub(super) fn to_child(&self, child: u32) {
        let Some(child) = i32::try_from(child).ok().and_then(Pid::from_raw) else { return };
        let before = std::mem::replace(&mut *receiver(), Receiver::Child(child));
        if let Receiver::Starting(Some(signal)) = before {
            send(child, signal);
        }
    }
}

impl Drop for PassedOn {
    fn drop(&mut self) {
        *receiver() = Receiver::Own;
    }
}

/// Ends this program with the same signal that ended another one.
pub fn end_by(signal: i32) -> ! {
    let _ = emulate_default_handler(signal);
    // The signal didn't end this program, so use the exit status that a shell would report.
    std::process::exit(128 + signal)
}
