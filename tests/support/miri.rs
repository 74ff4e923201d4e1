//! Writes a trace in the format of Miri's tracing. Interpreted calls and steps are async events, matched by ID; the
//! interpreter's own work is on its thread. Numbers are strings, times are decimal microseconds, and each event is a
//! line.

use super::names::name;
use super::random::Random;
use std::io::{self, Write};

struct Trace<'w> {
    out: &'w mut dyn Write,
    random: Random,
    now: u64,
    id: u64,
    frames: u64,
}

impl Trace<'_> {
    fn event(&mut self, phase: char, name: &str, id: Option<u64>, args: &str) -> io::Result<()> {
        self.now += 50 + self.random.below(300);
        // IDs use all 64 bits, so half of them are negative.
        let id = id.map_or(String::new(), |id| format!(r#","id":{}"#, (id << 48 | id) as i64));
        let time = format!("{}.{:03}", self.now / 1000, self.now % 1000);
        let scope = if phase == 'i' { r#","s":"t""# } else { "" };
        write!(
            self.out,
            ",\n{{\".file\":\"src/main.rs\",\".line\":17,\"args\":{{{args}}},\"cat\":\"miri\"{id},\"name\":\"{name}\",\"ph\":\"{phase}\",\"pid\":1{scope},\"tid\":0,\"ts\":{time}}}"
        )
    }

    fn span(&mut self, name: &str, args: &str, inner: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.event('B', name, None, args)?;
        inner(self)?;
        self.event('E', name, None, args)
    }

    fn by_id(&mut self, name: &str, args: &str, inner: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.id += 1;
        let id = self.id;
        self.event('b', name, Some(id), args)?;
        inner(self)?;
        self.event('e', name, Some(id), args)
    }

    fn frame(&mut self, function: u64, depth: u64) -> io::Result<()> {
        self.frames = self.frames.saturating_sub(1);
        let message = format!(r#""message":"{}""#, name(function));
        self.by_id("frame", &message, |trace| {
            for _ in 0..2 + trace.random.below(6) {
                trace.step()?;
                if trace.frames > 0 && trace.random.below(12) > depth {
                    let callee = (function * 3 + 1 + trace.random.below(3)) % 40;
                    trace.frame(callee, depth + 1)?;
                }
            }
            Ok(())
        })
    }

    fn step(&mut self) -> io::Result<()> {
        let args = r#""span":"\"src/main.rs:3:5: 3:9 (#0)\"","step":"eval_statement","stmt":"_6 = move _3""#;
        self.by_id("step", args, |trace| match trace.random.below(4) {
            0 => trace.span("validate_operand", r#""ty":"\"Vec<i32>\"""#, |trace| {
                trace.span("layouting", r#""layouting":"layout_of","ty":"\"i32\"""#, |_| Ok(()))
            }),
            1 => {
                trace.span("borrow_tracker", r#""alloc_id":"1901","borrow_tracker":"before_memory_write""#, |_| Ok(()))
            }
            2 => trace.span("borrow_tracker", r#""alloc_id":"7","borrow_tracker":"\"on_stack_pop\"""#, |_| Ok(())),
            _ => trace.event('i', "event src/main.rs:23", None, r#""message":"StorageLive(_29)""#),
        })
    }
}

/// Writes a trace of about `frames` interpreted calls.
pub(crate) fn trace(out: &mut dyn Write, frames: u64) -> io::Result<()> {
    let head = "[\n{\"args\":{\"name\":\"main\"},\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0}";
    out.write_all(head.as_bytes())?;
    let mut trace = Trace { out, random: Random(0x9E37_79B9_7F4A_7C15), now: 2000, id: 0, frames };
    while trace.frames > 0 {
        let function = trace.random.below(40);
        trace.frame(function, 0)?;
    }
    out.write_all(b"\n]\n")
}
