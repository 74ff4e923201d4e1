//! Checks what can be recorded on this machine, and warns about settings that make recordings incomplete.

use super::options::RecordOptions;
use crate::error::{Error, Result};
use crate::io::{self, OutPath, started};
use crate::runtimes::find_runtime_of_source;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What was found out about this machine before recording.
pub(super) struct Machine {
    /// The event to record. `None` if the user chose an event.
    pub(super) event: Option<&'static str>,
    /// Notes to print before recording starts.
    pub(super) notes: Vec<String>,
}

/// The event to record if the CPU can count it.
const CYCLES: &str = "cycles";
/// A timer of the kernel, to be recorded if the CPU can't count cycles, as in many virtual machines.
const CPU_CLOCK: &str = "cpu-clock";

/// The number of samples per second to assume for the note about disk space, if the user asked for the maximum (`max`).
const USUAL_FREQUENCY: u64 = 999;

/// With less free disk space than this, in bytes, nothing is recorded.
const LEAST_ROOM: u64 = 16 << 20;
/// With less free disk space than this, in bytes, there is a note.
const LITTLE_ROOM: u64 = 1 << 30;

impl Machine {
    /// Checks the machine. Fails if perf or the program is missing, or if nothing can be recorded.
    pub(super) fn examine(options: &RecordOptions) -> Result<Self> {
        if started::program_path(b"perf").is_none() {
            let remedy = "install linux-perf (Debian), linux-tools-generic (Ubuntu) or perf (Fedora, Arch)";
            return Err(Error::new("perf is not installed").with_remedy(Some(remedy.to_owned())));
        }
        if let Some(program) = options.program.first()
            && started::program_path(program).is_none()
        {
            return Err(no_such_program(program));
        }
        // perf follows symbolic links, so refuse one that another user made.
        OutPath::from(options.output.clone()).refuse_foreign_links()?;
        let mut notes = Vec::new();
        let is_root = rustix::process::geteuid().is_root();
        let chosen = options.typed().has(&["e", "event"]);
        let event = if chosen { None } else { Some(Self::find_event(is_root, &mut notes)?) };
        if options.records_machine() {
            check_machine_wide(options.program.is_empty())?;
        }
        notes.extend(kernel_note(is_root));
        notes.extend(disk_space_note(options)?);
        notes.extend(previous_recording_note(options));
        Ok(Self { event, notes })
    }

    /// Runs `perf stat` briefly to see which event works.
    fn find_event(is_root: bool, notes: &mut Vec<String>) -> Result<&'static str> {
        // `:u` counts only user code, which needs the least permission.
        let words: [&[u8]; 8] = [b"perf", b"stat", b"-x,", b"-e", b"cycles:u", b"-e", b"cpu-clock:u", b"true"];
        let output = started::run_for_output(&words)?;
        if counts(&output, CYCLES) {
            return Ok(CYCLES);
        }
        if counts(&output, CPU_CLOCK) {
            notes.push(
                "this machine cannot count processor cycles (it is probably a virtual machine), so samples are taken \
                 by a timer (-e cpu-clock)"
                    .to_owned(),
            );
            return Ok(CPU_CLOCK);
        }
        let paranoid = kernel_setting("perf_event_paranoid");
        let remedy = match paranoid {
            Some(level @ 3..) if !is_root => {
                format!(
                    "kernel.perf_event_paranoid is {level}; run sysctl kernel.perf_event_paranoid=1 as root, or \
                     record as root"
                )
            }
            _ => {
                format!(
                    "perf said: {}",
                    output.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
                )
            }
        };
        Err(Error::new("perf cannot count any event here").with_remedy(Some(remedy)))
    }
}

/// The error for a program that can't be started. If there is a file of that name, says how to run it.
fn no_such_program(program: &[u8]) -> Error {
    let shown = String::from_utf8_lossy(program);
    let file = Path::new(OsStr::from_bytes(program));
    if !io::is_file(file) {
        return Error::new(format!("{shown}: no such program"));
    }
    let remedy = match find_runtime_of_source(file) {
        Some(runtime) => format!("run it with its runtime: jitgraft record -- {} {shown}", runtime.called),
        None if program.contains(&b'/') => format!("make it executable: chmod +x {shown}"),
        None => format!("for the file in this directory, use ./{shown}"),
    };
    Error::new(format!("{shown}: is a file, but not a program that can be started")).with_remedy(Some(remedy))
}

/// Fails if this user may not record all processes of the machine. Without this check, perf would fail only after it
/// has renamed an existing recording. `is_default` is true if all processes are recorded because the user named no
/// program; it only changes the message.
fn check_machine_wide(is_default: bool) -> Result<()> {
    let words: [&[u8]; 7] = [b"perf", b"stat", b"-a", b"-x,", b"-e", b"cpu-clock", b"true"];
    if counts(&started::run_for_output(&words)?, CPU_CLOCK) {
        return Ok(());
    }
    let start = if is_default { "no COMMAND given, and " } else { "" };
    let level = kernel_setting("perf_event_paranoid")
        .map_or_else(String::new, |level| format!(": kernel.perf_event_paranoid is {level}, and must be 0 or less"));
    let remedy = "record a program with jitgraft record -- COMMAND, or all processes as root";
    Err(Error::new(format!("{start}recording all processes is not permitted{level}"))
        .with_remedy(Some(remedy.to_owned())))
}

/// A note if recording will destroy an earlier recording: perf renames an existing FILE to `FILE.old`, and thereby
/// replaces an existing `FILE.old`. `None` if either of them doesn't exist.
fn previous_recording_note(options: &RecordOptions) -> Option<String> {
    let output = &options.output;
    let mut older = output.clone().into_os_string();
    older.push(".old");
    if output.as_os_str() == "-" || !io::is_there(output) || !io::is_there(Path::new(&older)) {
        return None;
    }
    let (output, older) = (output.display(), Path::new(&older).display());
    Some(format!("perf renames {output} to {older}, which replaces the existing {older} (to keep both, use -o FILE)"))
}

/// True if `perf stat -x,` could count an event. `output` is what it printed, with lines of the form
/// `VALUE,UNIT,EVENT,…`.
fn counts(output: &str, event: &str) -> bool {
    output.lines().any(|line| {
        let mut fields = line.split(',');
        let value = fields.next().unwrap_or_default();
        let name = fields.nth(1).unwrap_or_default();
        name.split(':').next() == Some(event) && value.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Reads a numeric setting from /proc/sys/kernel. `None` if it can't be read.
fn kernel_setting(name: &str) -> Option<i32> {
    io::read_system_text(&Path::new("/proc/sys/kernel").join(name)).ok()?.trim().parse().ok()
}

/// A note if the kernel's functions can't be recorded or named. `None` if they can, or if the kernel's settings can't
/// be read. At `kptr_restrict` 1, only root sees the addresses of kernel symbols; at 2, nobody does.
fn kernel_note(is_root: bool) -> Option<String> {
    let paranoid = kernel_setting("perf_event_paranoid")?;
    let hidden = kernel_setting("kptr_restrict")?;
    if !is_root && paranoid >= 2 {
        return Some(format!(
            "kernel.perf_event_paranoid is {paranoid}, so kernel code is not recorded (to change it: sudo sysctl \
             kernel.perf_event_paranoid=1)"
        ));
    }
    let is_hidden = if is_root { hidden >= 2 } else { hidden >= 1 };
    if !is_hidden {
        return None;
    }
    Some(format!(
        "kernel.kptr_restrict is {hidden}, so kernel functions will be unnamed (to change it: sudo sysctl \
         kernel.kptr_restrict=0)"
    ))
}

/// Checks the free disk space where the recording is written. Returns a note if space is low, and fails if it is almost
/// used up.
fn disk_space_note(options: &RecordOptions) -> Result<Option<String>> {
    let directory = options.output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if options.output.as_os_str() == "-" {
        return Ok(None);
    }
    let about = rustix::fs::statvfs(directory)
        .map_err(|error| Error::new("cannot write there").because(std::io::Error::from(error)).in_file(directory))?;
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    let mib = free >> 20;
    if free < LEAST_ROOM {
        let remedy = "choose another directory with -o FILE".to_owned();
        return Err(Error::new(format!("the file system has only {mib} MiB free"))
            .in_file(directory)
            .with_remedy(Some(remedy)));
    }
    Ok((free < LITTLE_ROOM).then(|| {
        // Each sample copies 8192 bytes of the stack, perf's default.
        let copies = (options.frequency.parse::<u64>().unwrap_or(USUAL_FREQUENCY) * 8192) >> 20;
        format!(
            "{} has only {mib} MiB free; with --call-graph dwarf, perf writes about {copies} MiB per second of CPU \
             time",
            directory.display()
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_values_are_distinguished_from_missing_ones() {
        let said = "<not supported>,,cycles:u,0,100.00,,\n0.44,msec,cpu-clock:u,441434,100.00,0.464,CPUs utilized\n";
        assert!(!counts(said, CYCLES) && counts(said, CPU_CLOCK));
        assert!(counts("12345,,cycles,0,100.00,,\n", CYCLES));
        assert!(!counts("<not counted>,,cycles:u,0,0.00,,\n", CYCLES));
        assert!(!counts("Error:\nAccess to performance monitoring is limited\n", CPU_CLOCK));
    }
}
