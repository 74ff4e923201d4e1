//! Spells a frame as a single string (its label), for folded stacks and flame graphs.
//!
//! Names from perf are spelled as in inferno-collapse-perf, so that the outputs of both tools can be compared and
//! merged:
//!
//! * An unknown function is named after its module (`[libc.so.6]`), or `[unknown]` without one.
//! * Argument lists of native functions are dropped (`f(int)` becomes `f`), except for Go's receivers and C++'s
//!   anonymous namespaces.
//! * For native functions in processes whose name starts with `java`, the `L` of a class name is dropped.
//! * Functions that a Java agent joined in one name ([`java_calls`](crate::runtimes::java_calls)) become separate
//!   frames, all but the first marked with `_[i]`.
//! * `;` separates frames, so that in a name it becomes `:`. Line breaks become spaces.
//!
//! If several functions of a profile have the same name, the location where each starts is appended ([`Namesakes`]).
//!
//! Labels differ from inferno's where inferno mangles names. Names of JIT code are kept whole, because a parenthesis in
//! a regular expression, a path or a signature doesn't start an argument list ([`Shortening`]). A name that starts with
//! `(` is kept (blocks in MoarVM, anonymous namespaces in C++). `->` only splits names of Java methods, while inferno
//! splits all names, even C++'s `operator->` and return types. `g in f`, the agent's other notation, is split here but
//! not by inferno.

use crate::analysis::named_frames::kind_of_unnamed;
use crate::analysis::namesakes::Namesakes;
use crate::model::stacks::{Frame, FrameKind, Profile, TRUNCATED, Track, UNKNOWN};
use std::borrow::Cow;

/// What to append to the labels of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Annotate {
    /// The process ID, on the outermost frame: `comm-pid`.
    pub pid: bool,
    /// Process and thread ID, on the outermost frame: `comm-pid/tid`.
    pub tid: bool,
    /// The mark `_[k]` on kernel functions.
    pub kernel: bool,
    /// The mark `_[j]` on JIT code.
    pub jit: bool,
    /// The mark `_[i]` on inlined calls.
    pub inline: bool,
    /// The address, on functions without a name.
    pub addrs: bool,
}

/// Which function names are shortened as inferno-collapse-perf does it, for example by dropping argument lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shortening {
    /// Shorten names of native functions only. For folded stacks.
    #[default]
    Native,
    /// Shorten all names. For output that should look exactly like inferno's.
    All,
    /// Shorten no names.
    Nothing,
}

impl Shortening {
    /// True if names of functions of this kind are shortened.
    fn applies_to(self, kind: FrameKind) -> bool {
        match self {
            Self::Native => kind != FrameKind::Jit,
            Self::All => true,
            Self::Nothing => false,
        }
    }
}

/// The frame to add to stacks as the outermost one: a property of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RootFrame {
    /// The name of the process or thread.
    #[default]
    Comm,
    /// The process ID.
    Pid,
    /// The thread ID.
    Tid,
    /// The CPU. The name of the process or thread follows as a second frame.
    Cpu,
    /// No property: stacks start with their own outermost frame.
    Nothing,
}

/// The labels of the frames that identify a thread, outermost first. Callers put them before the outermost frames of
/// the thread's stacks. Empty if the thread has neither name nor ID, or if neither `by` nor `annotate` asks for them.
pub fn roots(track: &Track, by: RootFrame, annotate: Annotate) -> Vec<String> {
    let mut roots = Vec::new();
    if let (RootFrame::Cpu, Some(cpu)) = (by, track.cpu) {
        roots.push(format!("cpu {cpu}"));
    }
    let comm = String::from_utf8_lossy(&track.comm);
    // Replace blanks by `_`, as inferno-collapse-perf does. But async-profiler's thread names (`[main tid=1234]`) keep
    // theirs, so that they are recognized when our output is read again.
    let mut root = if tid_of_thread(&track.comm).is_some() { comm.into_owned() } else { comm.replace(' ', "_") };
    let (pid, tid) = (track.pid.map(|pid| pid.0), track.tid.map(|tid| tid.0));
    // If neither name nor ID of the process or thread is asked for, no frame identifies it.
    if by == RootFrame::Nothing && !annotate.pid && !annotate.tid {
        return roots;
    }
    let with_tid = (annotate.tid || by == RootFrame::Tid) && tid.is_some();
    if with_tid {
        root += &format!("-{}/{}", format_id(pid), format_id(tid));
    } else if (annotate.pid || annotate.tid || by == RootFrame::Pid) && pid.is_some() {
        root += &format!("-{}", format_id(pid));
    }
    if !root.is_empty() {
        roots.push(printable(root));
    }
    roots
}

/// An ID, or `?` if it is unknown.
fn format_id(id: Option<i32>) -> String {
    match id {
        Some(id) => id.to_string(),
        None => "?".to_owned(),
    }
}

/// True if a process of this name runs Java, so that its function names are spelled by Java's rules.
pub fn is_java(comm: &[u8]) -> bool {
    comm.starts_with(b"java")
}

/// How to spell the label of a frame.
#[derive(Debug, Clone, Copy, Default)]
pub struct LabelStyle<'n> {
    /// Spell names by Java's rules.
    pub java: bool,
    /// What to append to labels.
    pub annotate: Annotate,
    /// Which names to shorten.
    pub shortening: Shortening,
    /// The functions that share their name with others. Their location is appended to the name.
    pub namesakes: Option<&'n Namesakes>,
}

/// Spells a frame as a label: the function's name or, if it has none, its module, with what `style` adds to it.
pub fn label(profile: &Profile, frame: &Frame, style: LabelStyle<'_>) -> String {
    let LabelStyle { java, annotate, shortening, namesakes } = style;
    let name = profile.name_of(frame.name);
    if name == UNKNOWN {
        return annotated(unknown(profile, frame, annotate.addrs), frame, annotate);
    }
    let name = String::from_utf8_lossy(name);
    // Names from formats other than perf's are never shortened.
    let is_shortened = profile.perf_names && shortening.applies_to(frame.kind);
    let mut spelled = if is_shortened { shorten(&name, java) } else { printable(name.into_owned()) };
    if let Some(location) = namesakes.and_then(|namesakes| namesakes.location(frame)) {
        spelled = printable(format!("{spelled} ({location})"));
    }
    annotated(spelled, frame, annotate)
}

/// The mark of inlined calls.
const INLINED: &str = "_[i]";

/// Appends to a label the mark for the kind of its frame, if the user asked for such marks and the label doesn't end
/// with it already. A call that a Java agent listed in its caller's name ([`Frame::from_joined_name`]) gets the mark of
/// inlined calls in any case, as inferno-collapse-perf does it.
fn annotated(label: String, frame: &Frame, annotate: Annotate) -> String {
    let suffix = match frame.kind {
        _ if frame.from_joined_name => INLINED,
        FrameKind::Kernel if annotate.kernel => "_[k]",
        FrameKind::Jit | FrameKind::JitUnnamed if annotate.jit => "_[j]",
        FrameKind::Inlined if annotate.inline => INLINED,
        _ => return label,
    };
    // Don't repeat the mark: a name from another tool may already end with it.
    if label.ends_with(suffix) { label } else { label + suffix }
}

/// Like [`unknown_in`], for the function of a frame. `with_addr` says whether to include the frame's address.
fn unknown(profile: &Profile, frame: &Frame, with_addr: bool) -> String {
    let addr = if with_addr { frame.addr } else { None };
    unknown_in(frame.module.map(|module| profile.name_of(module)), addr)
}

/// The label of a function without a name: the file name of its module and the address, as far as they are given.
/// `[unknown]` if neither is. A module that is in brackets already, such as `[kernel.kallsyms]`, doesn't get a second
/// pair.
fn unknown_in(module: Option<&[u8]>, addr: Option<u64>) -> String {
    let module = module.map(String::from_utf8_lossy);
    let file_name = module.as_deref().map(|module| module.rsplit('/').next().unwrap_or(module));
    // perf writes `[unknown]` for a module that it doesn't know.
    let file_name = file_name.filter(|name| *name != "[unknown]");
    let name = file_name.unwrap_or("unknown");
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    printable(match addr {
        Some(addr) => format!("[{name} <{addr:x}>]"),
        None => format!("[{name}]"),
    })
}

/// Shortens a name as inferno-collapse-perf does: without arguments and, in Java, without the `L` before a class name
/// (`Lorg/a/B;`).
fn shorten(name: &str, is_java: bool) -> String {
    let name = without_arguments(name);
    let class = name.strip_prefix('L').filter(|rest| is_java && rest.contains('/'));
    printable(class.unwrap_or(name).to_owned())
}

/// Replaces `;`, which separates the frames of a folded stack, by `:`, and line breaks by spaces.
fn printable(label: String) -> String {
    if label.contains([';', '\n', '\r']) { label.replace(';', ":").replace(['\n', '\r'], " ") } else { label }
}

/// Splits a mark such as `_[k]` off a label. Returns the name and the kind of code that the mark stands for; `None` if
/// there is no mark.
pub fn marked(label: &[u8]) -> Option<(&[u8], FrameKind)> {
    let (name, mark) = label.split_last_chunk()?;
    match mark {
        b"_[k]" => Some((name, FrameKind::Kernel)),
        // An unnamed function is labeled with its module, so a module before the mark stands for unnamed JIT code.
        b"_[j]" if module_in(name).is_some() => Some((name, FrameKind::JitUnnamed)),
        // `_[j]` is the mark of JIT code. async-profiler also marks interpreted Java methods (`_[0]`) and methods that
        // HotSpot's first compiler compiled (`_[1]`). We have no kinds for these, so they count as JIT code.
        b"_[j]" | b"_[0]" | b"_[1]" => Some((name, FrameKind::Jit)),
        b"_[i]" => Some((name, FrameKind::Inlined)),
        _ => None,
    }
}

/// The kind of code that a label without a mark (such as `_[k]`) stands for. An unnamed function is labeled with its
/// module in brackets, which determines the kind. If the module is the kernel's, the kind is unknown.
pub fn unmarked(label: &[u8]) -> FrameKind {
    if let Some((_, kind)) = ASYNC_PROFILER_FRAMES.iter().find(|(inserted, _)| inserted.as_bytes() == label) {
        return *kind;
    }
    // If the frame only describes the thread, it isn't code. There is no kind for that, so it counts as user code.
    if tid_of_thread(label).is_some() || is_thread_property(label) {
        return FrameKind::User;
    }
    let Some(module) = module_in(label) else { return FrameKind::User };
    match module {
        // `[heap]` and `[stack]` may be the memory of that name or a program.
        b"unknown" | b"heap" | b"stack" | b"kernel.kallsyms" | b"guest.kernel.kallsyms" => FrameKind::Unknown,
        b"JIT app cache" | b"JIT zygote cache" | b"JIT" => FrameKind::JitUnnamed,
        _ if module.starts_with(b"anon:") || module.starts_with(b"anon_shmem:") => FrameKind::Anonymous,
        _ => match kind_of_unnamed(module) {
            FrameKind::Kernel => FrameKind::Unknown,
            kind => kind,
        },
    }
}

/// Frames that async-profiler inserts where it couldn't walk the stack, with the kind of code that they stand for.
const ASYNC_PROFILER_FRAMES: [(&str, FrameKind); 20] = [
    ("[unknown_Java]", FrameKind::JitUnnamed),
    ("[not_walkable_Java]", FrameKind::JitUnnamed),
    ("[no_Java_frame]", FrameKind::Unknown),
    ("[unknown_not_Java]", FrameKind::Unknown),
    ("[not_walkable_not_Java]", FrameKind::Unknown),
    ("[unknown_state]", FrameKind::Unknown),
    ("[thread_exit]", FrameKind::Unknown),
    ("[deoptimization]", FrameKind::Unknown),
    ("[safepoint]", FrameKind::Unknown),
    ("[skipped]", FrameKind::Unknown),
    ("[GC_active]", FrameKind::Unknown),
    ("[frame_buffer_overflow]", FrameKind::Unknown),
    ("[break_no_anchor]", FrameKind::Unknown),
    ("[break_interpreted]", FrameKind::Unknown),
    ("[break_compiled]", FrameKind::Unknown),
    ("[break_deopt]", FrameKind::Unknown),
    ("[break_entry_frame]", FrameKind::Unknown),
    ("[break_not_walkable]", FrameKind::Unknown),
    ("[not_walkable]", FrameKind::Unknown),
    ("[unknown_nmethod]", FrameKind::Unknown),
];

/// The thread ID in the outermost frame that async-profiler's option `-t` adds: `[main tid=1234]`, or `[tid=1234]` for
/// a thread without a name. `None` for other labels.
pub fn tid_of_thread(label: &[u8]) -> Option<i32> {
    let thread = label.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let tid = match thread.strip_prefix(b"tid=") {
        Some(tid) => tid,
        None => &thread[memchr::memmem::rfind(thread, b" tid=")? + 5..],
    };
    std::str::from_utf8(tid).ok()?.parse().ok().filter(|tid| *tid >= 0)
}

/// True for the frames that async-profiler adds for a thread's scheduling policy and CPU (`--sched`, `--record-cpu`):
/// `[SCHED_BATCH]`, `[CPU-3]`.
fn is_thread_property(label: &[u8]) -> bool {
    let Some(property) = label.strip_prefix(b"[").and_then(|label| label.strip_suffix(b"]")) else { return false };
    match property.strip_prefix(b"CPU-") {
        Some(cpu) => !cpu.is_empty() && cpu.iter().all(u8::is_ascii_digit),
        None => property.strip_prefix(b"SCHED_").is_some_and(|policy| policy.iter().all(u8::is_ascii_uppercase)),
    }
}

/// The module in the label of an unnamed function: `libc.so.6` in `[libc.so.6]` or `[libc.so.6 <1f>]`. `None` for other
/// labels, also for the one that marks a truncated stack, although it has brackets.
fn module_in(label: &[u8]) -> Option<&[u8]> {
    let module = label.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let addr = module.strip_suffix(b">").and_then(|_| memchr::memmem::rfind(module, b" <"));
    Some(addr.map_or(module, |addr| &module[..addr])).filter(|_| label != TRUNCATED)
}

/// True if a label stands for functions without a name, such as `[libc.so.6]` or `[unknown]`.
pub fn is_unnamed(label: &str) -> bool {
    let bytes = label.as_bytes();
    module_in(marked(bytes).map_or(bytes, |(name, _)| name)).is_some()
}

/// A function name without its argument list, which starts at the first parenthesis outside of all brackets. Names that
/// start with a parenthesis are kept, and so are Go's receivers and C++'s anonymous namespaces.
fn without_arguments(name: &str) -> &str {
    let mut depth = 0i32;
    let bytes = name.as_bytes();
    for (position, &byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'{' | b'[' => depth += 1,
            b'>' | b'}' | b']' | b')' => depth -= 1,
            b'(' => {
                // Go's receivers, such as `(*Client)` in `http.(*Client).Do`.
                let is_receiver = position > 0 && bytes[position - 1] == b'.';
                let is_namespace = name[position..].starts_with("(anonymous namespace)");
                if depth == 0 && position > 0 && !is_receiver && !is_namespace {
                    return &name[..position];
                }
                depth += 1;
            }
            _ => {}
        }
    }
    name
}

/// The label of a function without a name: its module as in `[libc.so.6]`, or `[unknown]` if that isn't known either.
pub fn unnamed(profile: &Profile, frame: &Frame) -> String {
    unknown(profile, frame, false)
}

/// Like [`unnamed`], but with the address if `annotate` says so.
pub fn unnamed_at(profile: &Profile, frame: &Frame, annotate: Annotate) -> String {
    unknown(profile, frame, annotate.addrs)
}

/// The full name of a function, for formats that store names separately. A function without a name is spelled as in
/// [`label`], but never with its address: otherwise each address would look like a function of its own.
pub fn function<'a>(profile: &'a Profile, frame: &Frame) -> Cow<'a, str> {
    function_name(profile.name_of(frame.name), frame.module.map(|module| profile.name_of(module)))
}

/// Like [`function`], for a function that is given by its name and module instead of a frame.
pub fn function_name<'n>(name: &'n [u8], module: Option<&[u8]>) -> Cow<'n, str> {
    match name {
        UNKNOWN => Cow::Owned(unknown_in(module, None)),
        name => String::from_utf8_lossy(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Pid, Tid};

    fn label_of(name: &[u8], module: &[u8], kind: FrameKind, java: bool, annotate: Annotate) -> String {
        let mut profile = Profile::new();
        profile.perf_names = true;
        let name = profile.name(name);
        let module = (!module.is_empty()).then(|| profile.name(module));
        let frame = Frame { module, addr: Some(0x1f), ..Frame::new(name, kind) };
        label(&profile, &frame, LabelStyle { java, annotate, ..LabelStyle::default() })
    }

    fn plain(name: &str) -> String {
        label_of(name.as_bytes(), b"/bin/x", FrameKind::User, false, Annotate::default())
    }

    #[test]
    fn arguments_go_and_names_stay() {
        assert_eq!(plain("f(int, char)"), "f");
        assert_eq!(plain("std::function<void (int)>::operator()(int) const"), "std::function<void (int)>::operator");
        assert_eq!(plain("net/http.(*Client).Do"), "net/http.(*Client).Do");
        assert_eq!(plain("(anonymous namespace)::run(int)"), "(anonymous namespace)::run");
        assert_eq!(plain("{lambda(int)#2}::operator()"), "{lambda(int)#2}::operator");
        assert_eq!(plain("[u8; 8]::f"), "[u8: 8]::f");
        assert_eq!(plain("call<fn() -> u8>"), "call<fn() -> u8>");
        assert_eq!(plain("(block)"), "(block)");
    }

    #[test]
    fn names_of_jit_code_are_whole() {
        let mut profile = Profile::new();
        profile.perf_names = true;
        let regex = "RegExp:(a+)+b";
        let name = profile.name(regex.as_bytes());
        let spelled = |kind, shortening| {
            label(&profile, &Frame::new(name, kind), LabelStyle { shortening, ..LabelStyle::default() })
        };
        for (shortening, of_jit, of_native) in [
            (Shortening::Native, regex, "RegExp:"),
            (Shortening::All, "RegExp:", "RegExp:"),
            (Shortening::Nothing, regex, regex),
        ] {
            assert_eq!(spelled(FrameKind::Jit, shortening), of_jit, "{shortening:?}");
            assert_eq!(spelled(FrameKind::User, shortening), of_native, "{shortening:?}");
        }
        let jit = |name: &[u8]| label_of(name, b"", FrameKind::Jit, false, Annotate::default());
        assert_eq!(jit(b"RegExp:(x|y)"), "RegExp:(x|y)");
        assert_eq!(jit(b"JS:*f /d (1)/a;b.js:1:1\n"), "JS:*f /d (1)/a:b.js:1:1 ");
    }

    #[test]
    fn an_unknown_function_is_called_after_its_module() {
        let addrs = Annotate { addrs: true, ..Annotate::default() };
        let unknown = |module: &[u8], annotate| label_of(UNKNOWN, module, FrameKind::User, false, annotate);
        assert_eq!(unknown(b"/usr/lib/libc.so.6", Annotate::default()), "[libc.so.6]");
        assert_eq!(unknown(b"", Annotate::default()), "[unknown]");
        assert_eq!(unknown(b"/usr/lib/libc.so.6", addrs), "[libc.so.6 <1f>]");
        assert_eq!(unknown(b"", addrs), "[unknown <1f>]");
        assert_eq!(unknown(b"[kernel.kallsyms]", Annotate::default()), "[kernel.kallsyms]");
        assert_eq!(unknown(b"[kernel.kallsyms]", addrs), "[kernel.kallsyms <1f>]");
        assert_eq!(unknown(b"[anon:JIT code]", Annotate::default()), "[anon:JIT code]");
        let mut profile = Profile::new();
        let (name, module) = (profile.name(UNKNOWN), Some(profile.name(b"/usr/lib/libc.so.6")));
        let frame = Frame { module, addr: Some(0x1f), ..Frame::new(name, FrameKind::User) };
        assert_eq!(function(&profile, &frame), "[libc.so.6]");
    }

    #[test]
    fn java_and_annotations() {
        let all = Annotate { jit: true, kernel: true, inline: true, ..Annotate::default() };
        let jit = |name: &[u8]| label_of(name, b"", FrameKind::Jit, true, all);
        assert_eq!(jit(b"Lorg/a/B;::call(I)V"), "Lorg/a/B:::call(I)V_[j]");
        let native = label_of(b"Lorg/a/B;::call(I)V", b"/x.so", FrameKind::User, true, all);
        assert_eq!(native, "org/a/B:::call");
        assert_eq!(jit(b"f_[j]"), "f_[j]");
        assert_eq!(jit(b"JS:*a->b /x.js:1:1"), "JS:*a->b /x.js:1:1_[j]");
        assert_eq!(label_of(b"read", b"", FrameKind::Kernel, false, all), "read_[k]");
        assert_eq!(label_of(b"get", b"", FrameKind::Inlined, false, all), "get_[i]");
    }

    #[test]
    fn labels_show_what_sort_of_code_has_no_name() {
        // Code without a name is labeled with its module in brackets, which shows the kind of code. Other labels in
        // brackets, such as those of threads and CPUs, are ordinary names (kind `User`). async-profiler has labels for
        // stacks that it couldn't walk.
        for (label, kind) in [
            ("f", FrameKind::User),
            ("[unknown]", FrameKind::Unknown),
            ("[unknown <1f>]", FrameKind::Unknown),
            ("[libc.so.6 <1f>]", FrameKind::NativeUnnamed),
            ("[perf-77.map]", FrameKind::Anonymous),
            ("[//anon]", FrameKind::Anonymous),
            ("[jitted-77.so]", FrameKind::JitUnnamed),
            ("[kernel.kallsyms]", FrameKind::Unknown),
            // As other tools label it.
            ("[[kernel.kallsyms]]", FrameKind::Unknown),
            ("[[stack]]", FrameKind::Anonymous),
            ("[stack]", FrameKind::Unknown),
            ("[anon:JIT code]", FrameKind::Anonymous),
            ("[JIT app cache]", FrameKind::JitUnnamed),
            ("[vdso <1f>]", FrameKind::NativeUnnamed),
            ("[truncated]", FrameKind::User),
            ("[unknown_Java]", FrameKind::JitUnnamed),
            ("[frame_buffer_overflow]", FrameKind::Unknown),
            ("[GC Thread#0 tid=1240]", FrameKind::User),
            ("[tid=1240]", FrameKind::User),
            ("[tid=x]", FrameKind::NativeUnnamed),
            ("[SCHED_BATCH]", FrameKind::User),
            ("[CPU-12]", FrameKind::User),
            ("[break_deopt]", FrameKind::Unknown),
            ("[unknown_nmethod]", FrameKind::Unknown),
        ] {
            assert_eq!(unmarked(label.as_bytes()), kind, "{label}");
        }
        let all = Annotate { jit: true, ..Annotate::default() };
        let label = label_of(UNKNOWN, b"/tmp/perf-77.map", FrameKind::JitUnnamed, false, all);
        assert_eq!(label, "[perf-77.map]_[j]");
        assert_eq!(marked(label.as_bytes()), Some((&b"[perf-77.map]"[..], FrameKind::JitUnnamed)));
    }

    #[test]
    fn a_name_marked_as_inlined_is_always_annotated() {
        let mut profile = Profile::new();
        profile.perf_names = true;
        for name in ["La/C;::g", "La/C;::g_[i]"] {
            let name = profile.name(name.as_bytes());
            let frame = Frame { from_joined_name: true, ..Frame::new(name, FrameKind::Jit) };
            let annotate = Annotate { jit: true, ..Annotate::default() };
            let style = |shortening| LabelStyle { java: true, annotate, shortening, namesakes: None };
            assert_eq!(label(&profile, &frame, style(Shortening::Native)), "La/C:::g_[i]");
            assert_eq!(label(&profile, &frame, style(Shortening::All)), "a/C:::g_[i]");
        }
    }

    #[test]
    fn roots_state_whose_stack_it_is() {
        let track = Track {
            comm: b"V8 Worker".to_vec(),
            pid: Some(Pid(7)),
            tid: Some(Tid(9)),
            cpu: Some(1),
            ..Track::default()
        };
        let tid = Annotate { tid: true, ..Annotate::default() };
        assert_eq!(roots(&track, RootFrame::Comm, Annotate::default()), ["V8_Worker"]);
        assert_eq!(roots(&track, RootFrame::Comm, tid), ["V8_Worker-7/9"]);
        assert_eq!(roots(&track, RootFrame::Pid, Annotate::default()), ["V8_Worker-7"]);
        assert_eq!(roots(&track, RootFrame::Cpu, Annotate::default()), ["cpu 1", "V8_Worker"]);
        assert!(roots(&Track::default(), RootFrame::Tid, tid).is_empty());
        assert!(roots(&track, RootFrame::Nothing, Annotate::default()).is_empty());
    }
}
