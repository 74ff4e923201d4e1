//! Finds the calls that were inlined into a method: the `parse` elements of its `task`.
//!
//! ```text
//! <task compile_id='3' method='java.lang.String hashCode ()I' …>
//! <type id='1210' name='int'/>
//! <klass id='1218' name='java.lang.String' flags='17'/>
//! <method id='1388' holder='1218' name='isLatin1' return='1204' …/>
//! <parse method='1386' stamp='0.066'>          the method itself
//! <bc code='182' bci='17'/>
//! <call method='1388' instr='invokevirtual'/>
//! <inline_success reason='inline'/>
//! <parse method='1388'>                        inlined into it, at its bytecode 17
//! ```
//!
//! IDs are only valid within the task. C2 postpones some calls: `<late_inline method='1393'>` lists the callers of the
//! next `parse`, innermost first (`<jvms bci='5' method='1391'/>`). If C2 starts over, it parses the method itself
//! again. There are no addresses, so inlined calls are known for a code range, but not for a position in it.

use super::element::{attribute, tag, unescaped};
use super::method::class_spelled;
use crate::bytes::digits::number;
use crate::model::code::{ExpandedCall, MOST_INLINED, SourceMap};
use crate::records::jit_logs::code_log::LogPositions;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The list of arguments in a method's name is cut after this many bytes, because each type ID in a damaged or hostile
/// log may stand for a name of any length. Names in Java class files are at most this long.
const LONGEST: usize = 1 << 16;

/// Reads the inlined calls of tasks.
#[derive(Debug)]
pub(super) struct Inlining;

impl LogPositions for Inlining {
    fn source_map<'a>(&'a self, _file: &'a [u8], _entry: &'a [u8]) -> SourceMap<'a> {
        SourceMap::default()
    }

    fn expanded(&self, entry: &[u8]) -> Vec<ExpandedCall> {
        let mut task = CompileTask::default();
        let mut rest = entry;
        while let Some(at) = memchr::memchr(b'<', rest) {
            rest = &rest[at..];
            if let Some(tag) = tag(rest) {
                task.element(tag);
            }
            rest = &rest[1..];
        }
        task.callers_first()
    }
}

/// A `parse` element: a method that the compiler parsed, to inline it or to compile it.
struct Parsed<'a> {
    method: &'a [u8],
    parent: Option<usize>,
    /// Bytecode index of the call in its caller.
    bytecode: u32,
}

#[derive(Default)]
struct CompileTask<'a> {
    /// Names of classes and primitive types, by ID.
    types: FxHashMap<&'a [u8], &'a [u8]>,
    /// The start tags of methods, by ID.
    methods: FxHashMap<&'a [u8], &'a [u8]>,
    parsed: Vec<Parsed<'a>>,
    /// The first `parse` with this parent, method and bytecode index.
    places: FxHashMap<(usize, &'a [u8], u32), usize>,
    /// The `parse` elements that have not ended, with the current bytecode index in each.
    open: Vec<(usize, u32)>,
    /// The callers of a postponed call, innermost first.
    callers: Option<Vec<(&'a [u8], u32)>>,
}

impl<'a> CompileTask<'a> {
    fn element(&mut self, tag: &'a [u8]) {
        let name = tag.split(|&byte| byte == b' ').next().unwrap_or_default();
        let value = |key: &[u8]| attribute(tag, key);
        match name {
            b"type" | b"klass" => self.types.extend(value(b"id").zip(value(b"name"))),
            b"method" => self.methods.extend(value(b"id").map(|id| (id, tag))),
            b"bc" => {
                if let (Some((_, at)), Some(bci)) = (self.open.last_mut(), value(b"bci").and_then(number)) {
                    *at = bci;
                }
            }
            b"late_inline" => self.callers = Some(Vec::new()),
            b"jvms" => {
                if let Some(callers) = &mut self.callers {
                    callers.extend(value(b"method").zip(value(b"bci").and_then(number)));
                }
            }
            b"parse" => self.parse(value(b"method").unwrap_or_default()),
            b"/parse" => drop(self.open.pop()),
            _ => {}
        }
    }

    fn parse(&mut self, method: &'a [u8]) {
        let late = self.callers.take().filter(|callers| !callers.is_empty());
        let (parent, bytecode) = match (self.open.last(), late) {
            (Some((parent, at)), _) => (Some(*parent), *at),
            (None, Some(callers)) => (Some(self.innermost(&callers)), callers[0].1),
            (None, None) => {
                self.parsed.clear();
                self.places.clear();
                (None, 0)
            }
        };
        self.open.push((self.parsed.len(), 0));
        if let Some(parent) = parent {
            self.places.entry((parent, method, bytecode)).or_insert(self.parsed.len());
        }
        self.parsed.push(Parsed { method, parent, bytecode });
    }

    /// Index of the `parse` that contains a postponed call, or of its closest known caller.
    fn innermost(&self, callers: &[(&'a [u8], u32)]) -> usize {
        let mut at = 0;
        for pair in callers.windows(2).rev() {
            let [(method, _), (_, bytecode)] = pair else { break };
            match self.places.get(&(at, *method, *bytecode)) {
                Some(found) => at = *found,
                None => break,
            }
        }
        at
    }

    /// All inlined calls, with callers before callees.
    fn callers_first(&self) -> Vec<ExpandedCall> {
        let mut calls: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for (at, call) in self.parsed.iter().enumerate() {
            if let Some(parent) = call.parent {
                calls.entry(parent).or_default().push(at);
            }
        }
        // Reversed, because the last element is taken first.
        let mut order = |caller: usize| {
            let mut those = calls.remove(&caller).unwrap_or_default();
            those.sort_by_key(|at| std::cmp::Reverse(self.parsed[*at].bytecode));
            those
        };
        let (mut told, mut too_deep) = (Vec::new(), 0_u64);
        let mut spelled: FxHashMap<&[u8], Arc<[u8]>> = FxHashMap::default();
        let mut left: Vec<(usize, u32)> = order(0).into_iter().map(|at| (at, 0)).collect();
        while let Some((at, depth)) = left.pop() {
            let call = &self.parsed[at];
            if (depth as usize) < MOST_INLINED {
                let function = spelled.entry(call.method).or_insert_with(|| self.spelled(call.method).into()).clone();
                told.push(ExpandedCall { function, depth, bytecode: call.bytecode });
            } else {
                too_deep += 1;
            }
            left.extend(order(at).into_iter().map(|at| (at, depth + 1)));
        }
        if too_deep > 0 {
            let function = format!("[{too_deep} more calls, nested more than {MOST_INLINED} deep]");
            told.push(ExpandedCall { function: function.into_bytes().into(), depth: 0, bytecode: 0 });
        }
        told
    }

    fn spelled(&self, method: &[u8]) -> Vec<u8> {
        let Some(tag) = self.methods.get(method) else { return b"?".to_vec() };
        let spelled = |id: &[u8]| {
            let name = self.types.get(id).copied().unwrap_or(b"?");
            class_spelled(&unescaped(name))
        };
        let one = |key: &[u8]| attribute(tag, key).map(spelled).unwrap_or_default();
        let name = unescaped(attribute(tag, b"name").unwrap_or(b"?"));
        let mut text = [&one(b"return")[..], b" ", &one(b"holder"), b".", &name, b"("].concat();
        let arguments = attribute(tag, b"arguments").unwrap_or_default();
        let arguments = arguments.split(|&byte| byte == b' ').filter(|id| !id.is_empty());
        for (at, argument) in arguments.enumerate() {
            text.extend_from_slice(if at > 0 { b", " } else { b"" });
            if text.len() > LONGEST {
                text.extend_from_slice(b"...");
                break;
            }
            text.extend_from_slice(&spelled(argument));
        }
        text.push(b')');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "<task compile_id='3' method='A f (I)I' level='4'>
<type id='1' name='int'/>
<klass id='2' name='A' flags='1'/>
<klass id='3' name='java.util.Map$Entry'/>
<klass id='4' name='[[Ljava.lang.String;'/>
<klass id='5' name='[B'/>
<method id='10' holder='2' name='f' return='1' arguments='1'/>
<method id='11' holder='3' name='&lt;init&gt;' return='1' arguments='4 5'/>
<method id='12' holder='2' name='g' return='3'/>
<method id='13' holder='2' name='h' return='1'/>
";

    fn told(body: &str) -> Vec<String> {
        let calls = Inlining.expanded([HEAD, body].concat().as_bytes());
        let line = |call: &ExpandedCall| {
            let indent = "  ".repeat(call.depth as usize);
            format!("{indent}@ {} {}", call.bytecode, String::from_utf8_lossy(&call.function))
        };
        calls.iter().map(line).collect()
    }

    #[test]
    fn expanded_calls_are_under_their_callers() {
        let body = "<parse method='10' stamp='1'><bc code='1' bci='4'/><call method='11'/>\n<inline_success/>\n\
            <parse method='11'>\n<bc code='1' bci='7'/>\n<call method='12'/><inline_success/><parse method='12'>\n</parse>\n\
            </parse>\n<bc code='2' bci='9'/><call method='13'/><inline_fail reason='too big'/>\n\
            <bc code='2' bci='11'/>\n<parse method='13'>\n</parse>\n</parse>\n</task>";
        let init = "@ 4 int java.util.Map$Entry.<init>(java.lang.String[][], byte[])";
        assert_eq!(told(body), [init, "  @ 7 java.util.Map$Entry A.g()", "@ 11 int A.h()"]);
    }

    #[test]
    fn deferred_calls_come_where_they_are_called() {
        let body = "<parse method='10'>\n<bc bci='4'/>\n<parse method='13'>\n</parse>\n<bc bci='6'/>\n<parse method='13'>\n</parse>\n</parse>\n\
            <late_inline method='12' inline_id='9'>\n<jvms bci='2' method='13'/>\n<jvms bci='6' method='10'/>\n</late_inline>\n\
            <parse method='12'>\n</parse>\n</task>";
        assert_eq!(told(body), ["@ 4 int A.h()", "@ 6 int A.h()", "  @ 2 java.util.Map$Entry A.g()"]);
    }

    #[test]
    fn the_last_attempt_counts() {
        let body = "<parse method='10'>\n<bc bci='4'/>\n<parse method='13'>\n</parse>\n</parse>\n<failure reason='retry'/>\n\
            <parse method='10'>\n<bc bci='6'/>\n<parse method='12'>\n</parse>\n</parse>\n</task>";
        assert_eq!(told(body), ["@ 6 java.util.Map$Entry A.g()"]);
    }

    #[test]
    fn calls_that_nest_too_deep_are_counted() {
        let (most, all) = (MOST_INLINED, 100_000);
        let parse = "<bc bci='1'/><parse method='11'>";
        let body = format!("<parse method='10'>{}{}</parse>", parse.repeat(all), "</parse>".repeat(all));
        let calls = Inlining.expanded([HEAD, &body].concat().as_bytes());
        assert_eq!((calls.len(), calls[most - 1].depth as usize), (most + 1, most - 1));
        let last = String::from_utf8_lossy(&calls[most].function);
        assert_eq!(last, format!("[{} more calls, nested more than {most} deep]", all - most));
        // Each postponed call lists all of its callers.
        let callers: String = (0..2000).map(|_| "<jvms bci='1' method='11'/>").collect();
        let late = format!("<late_inline method='11'>{callers}</late_inline><parse method='11'></parse>");
        assert!(Inlining.expanded([HEAD, &body, &late.repeat(50)].concat().as_bytes()).len() > most);
    }

    #[test]
    fn every_prefix_and_every_flipped_byte_is_read() {
        let body = "<parse method='10'><bc bci='4'/><parse method='11'><bc bci='7'/><parse method='12'></parse></parse></parse>\
            <late_inline method='13'><jvms bci='1' method='12'/><jvms bci='4' method='10'/></late_inline><parse method='13'></parse>";
        let text = [HEAD, body].concat();
        for at in 0..text.len() {
            assert!(Inlining.expanded(&text.as_bytes()[..at]).len() <= 3);
            let mut bent = text.clone().into_bytes();
            bent[at] ^= 1 << (at % 8);
            assert!(Inlining.expanded(&bent).len() <= 4);
        }
    }
}
