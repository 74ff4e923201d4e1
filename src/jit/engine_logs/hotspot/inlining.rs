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

use super::element::{attribute, tag, unescape};
use super::method::spell_class;
use crate::bytes::digits::number;
use crate::jit::engine_logs::code_log::LogPositions;
use crate::model::code::{ExpandedCall, MOST_INLINED, SourceMap};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Arc;

/// When a method's name has this many bytes, the rest of its arguments are left out: in a damaged or hostile log, each
/// type ID may stand for a name of any length. Names in Java class files are at most this long.
const LONGEST_METHOD: usize = 1 << 16;

/// Decodes the inlined calls of a code range from its `task` element, when they are needed.
#[derive(Debug)]
pub(super) struct Inlining;

impl LogPositions for Inlining {
    fn source_map<'a>(&'a self, _file: &'a [u8], _entry: &'a [u8]) -> SourceMap<'a> {
        SourceMap::default()
    }

    /// The calls that were inlined into a method; callers come before their callees. `entry` is the method's `task`
    /// element.
    fn expanded_calls(&self, entry: &[u8]) -> Vec<ExpandedCall> {
        let mut task = CompileTask::default();
        let mut rest = entry;
        while let Some(start) = memchr::memchr(b'<', rest) {
            rest = &rest[start..];
            if let Some(tag) = tag(rest) {
                task.read_element(tag);
            }
            // The `<` may have been part of a text, so the search goes on right after it.
            rest = &rest[1..];
        }
        task.callers_first()
    }
}

/// A `parse` element: a method that the compiler parsed, to inline it or to compile it.
struct ParsedMethod<'a> {
    /// The method's ID.
    method: &'a [u8],
    /// Index of the caller in [`CompileTask::parsed`]; `None` for the method that the task compiles.
    parent: Option<usize>,
    /// Bytecode index of the call in the caller.
    bytecode: u32,
}

/// A `parse` element that hasn't ended.
struct OpenMethod {
    /// Index in [`CompileTask::parsed`].
    index: usize,
    /// Index of the bytecode in this method that the compiler is looking at.
    bytecode: u32,
}

/// A `jvms` element: a caller of a postponed call.
struct LateCaller<'a> {
    method: &'a [u8],
    /// Bytecode index of the call in this caller.
    bytecode: u32,
}

#[derive(Default)]
/// What the elements of a `task` have said so far.
struct CompileTask<'a> {
    /// Names of classes and primitive types, by ID.
    types: FxHashMap<&'a [u8], &'a [u8]>,
    /// The start tags of methods, by ID.
    methods: FxHashMap<&'a [u8], &'a [u8]>,
    /// The `parse` elements since the compiler last started over, in the order of their start tags.
    parsed: Vec<ParsedMethod<'a>>,
    /// Index of the first element of `parsed` with this parent, method and bytecode index.
    parsed_calls: FxHashMap<(usize, &'a [u8], u32), usize>,
    /// The `parse` elements that have not ended, outermost first.
    open: Vec<OpenMethod>,
    /// The callers that C2 listed after `late_inline`, innermost first. `None` if the next `parse` isn't a postponed
    /// call.
    late_callers: Option<Vec<LateCaller<'a>>>,
}

impl<'a> CompileTask<'a> {
    /// Reads one element of a compilation: definitions of types and methods, and the start and end of inlined methods.
    fn read_element(&mut self, tag: &'a [u8]) {
        let name = tag.split(|&byte| byte == b' ').next().unwrap_or_default();
        match name {
            b"type" | b"klass" => {
                if let (Some(id), Some(name)) = (attribute(tag, b"id"), attribute(tag, b"name")) {
                    self.types.insert(id, name);
                }
            }
            b"method" => {
                if let Some(id) = attribute(tag, b"id") {
                    self.methods.insert(id, tag);
                }
            }
            // The calls that follow are at this bytecode index of the innermost open method.
            b"bc" => {
                if let (Some(open), Some(bci)) = (self.open.last_mut(), attribute(tag, b"bci").and_then(number)) {
                    open.bytecode = bci;
                }
            }
            // The compiler comes back to a call that it had postponed. The `jvms` elements that follow are its callers.
            b"late_inline" => self.late_callers = Some(Vec::new()),
            b"jvms" => {
                if let Some(callers) = &mut self.late_callers
                    && let (Some(method), Some(bytecode)) =
                        (attribute(tag, b"method"), attribute(tag, b"bci").and_then(number))
                {
                    callers.push(LateCaller { method, bytecode });
                }
            }
            b"parse" => self.start_method(attribute(tag, b"method").unwrap_or_default()),
            b"/parse" => drop(self.open.pop()),
            _ => {}
        }
    }

    /// Handles the start of a `parse` element. If another element is open, this is a call that is inlined into the
    /// innermost open one. If none is open, it is a postponed call if its callers were listed before, and otherwise the
    /// method that the task compiles.
    fn start_method(&mut self, method: &'a [u8]) {
        let late_callers = self.late_callers.take().unwrap_or_default();
        let (mut parent, mut bytecode) = (None, 0);
        if let Some(open) = self.open.last() {
            (parent, bytecode) = (Some(open.index), open.bytecode);
        } else if let Some(innermost) = late_callers.first() {
            (parent, bytecode) = (Some(self.find_late_caller(&late_callers)), innermost.bytecode);
        } else {
            // This is the method that the task compiles. If it was parsed before, the compiler starts over, so forget
            // what it inlined then.
            self.parsed.clear();
            self.parsed_calls.clear();
        }
        let index = self.parsed.len();
        self.open.push(OpenMethod { index, bytecode: 0 });
        if let Some(parent) = parent {
            self.parsed_calls.entry((parent, method, bytecode)).or_insert(index);
        }
        self.parsed.push(ParsedMethod { method, parent, bytecode });
    }

    /// The index of the parsed method into which a postponed call was inlined. `callers` has the callers of that call,
    /// the innermost first; the last one is the compiled method. The search goes from the compiled method inwards. If
    /// it comes to an unknown caller, the result is the caller before it.
    fn find_late_caller(&self, callers: &[LateCaller<'a>]) -> usize {
        // The compiled method itself has index 0.
        let mut innermost_known = 0;
        for pair in callers.windows(2).rev() {
            let [callee, caller] = pair else { break };
            // Look for the method that was inlined for this call.
            match self.parsed_calls.get(&(innermost_known, callee.method, caller.bytecode)) {
                Some(index) => innermost_known = *index,
                None => break,
            }
        }
        innermost_known
    }

    /// For each parsed method with inlined calls, the indices of these calls, by descending bytecode index:
    /// `callers_first` takes them from the end.
    fn calls_by_caller(&self) -> FxHashMap<usize, Vec<usize>> {
        let mut calls: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for (index, call) in self.parsed.iter().enumerate() {
            if let Some(parent) = call.parent {
                calls.entry(parent).or_default().push(index);
            }
        }
        for calls in calls.values_mut() {
            calls.sort_by_key(|index| Reverse(self.parsed[*index].bytecode));
        }
        calls
    }

    /// All inlined calls, with callers before callees and the calls of a method in the order of its bytecode. Calls
    /// that are nested too deep are only counted: one entry at the end stands for all of them.
    fn callers_first(&self) -> Vec<ExpandedCall> {
        let mut calls_by_caller = self.calls_by_caller();
        let mut expanded = Vec::new();
        let mut too_deep = 0_u64;
        let mut names: FxHashMap<&[u8], Arc<[u8]>> = FxHashMap::default();
        // The calls still to visit, each with its depth. The last one is next.
        let mut stack: Vec<(usize, u32)> = Vec::new();
        // Begin with the calls of the compiled method itself, which has index 0.
        stack.extend(calls_by_caller.remove(&0).unwrap_or_default().into_iter().map(|call| (call, 0)));
        while let Some((index, depth)) = stack.pop() {
            let call = &self.parsed[index];
            if (depth as usize) < MOST_INLINED {
                let function = names.entry(call.method).or_insert_with(|| self.spell_method(call.method).into());
                expanded.push(ExpandedCall { function: function.clone(), depth, bytecode: call.bytecode });
            } else {
                too_deep += 1;
            }
            let callees = calls_by_caller.remove(&index).unwrap_or_default();
            stack.extend(callees.into_iter().map(|callee| (callee, depth + 1)));
        }
        if too_deep > 0 {
            let function = format!("[{too_deep} more calls, nested more than {MOST_INLINED} deep]");
            expanded.push(ExpandedCall { function: function.into_bytes().into(), depth: 0, bytecode: 0 });
        }
        expanded
    }

    /// Spells the name of the method with this ID as in a perf map. What the log doesn't name becomes `?`.
    fn spell_method(&self, method: &[u8]) -> Vec<u8> {
        let Some(tag) = self.methods.get(method) else { return b"?".to_vec() };
        let result = attribute(tag, b"return").map(|id| self.spell_type(id)).unwrap_or_default();
        let holder = attribute(tag, b"holder").map(|id| self.spell_type(id)).unwrap_or_default();
        let name = unescape(attribute(tag, b"name").unwrap_or(b"?"));
        let mut text = [&result[..], b" ", &holder, b".", &name, b"("].concat();
        let arguments = attribute(tag, b"arguments").unwrap_or_default();
        let arguments = arguments.split(|&byte| byte == b' ').filter(|id| !id.is_empty());
        for (index, argument) in arguments.enumerate() {
            text.extend_from_slice(if index > 0 { b", " } else { b"" });
            if text.len() > LONGEST_METHOD {
                text.extend_from_slice(b"...");
                break;
            }
            text.extend_from_slice(&self.spell_type(argument));
        }
        text.push(b')');
        text
    }

    fn spell_type(&self, id: &[u8]) -> Vec<u8> {
        let name = self.types.get(id).copied().unwrap_or(b"?");
        spell_class(&unescape(name))
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

    /// Each call as `@ BYTECODE FUNCTION`, indented by its depth.
    fn call_lines(body: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for call in Inlining.expanded_calls([HEAD, body].concat().as_bytes()) {
            let indent = "  ".repeat(call.depth as usize);
            lines.push(format!("{indent}@ {} {}", call.bytecode, String::from_utf8_lossy(&call.function)));
        }
        lines
    }

    #[test]
    fn expanded_calls_are_under_their_callers() {
        let body = "<parse method='10' stamp='1'><bc code='1' bci='4'/><call method='11'/>\n<inline_success/>\n\
            <parse method='11'>\n<bc code='1' bci='7'/>\n<call method='12'/><inline_success/><parse method='12'>\n</parse>\n\
            </parse>\n<bc code='2' bci='9'/><call method='13'/><inline_fail reason='too big'/>\n\
            <bc code='2' bci='11'/>\n<parse method='13'>\n</parse>\n</parse>\n</task>";
        let init = "@ 4 int java.util.Map$Entry.<init>(java.lang.String[][], byte[])";
        assert_eq!(call_lines(body), [init, "  @ 7 java.util.Map$Entry A.g()", "@ 11 int A.h()"]);
    }

    #[test]
    fn deferred_calls_come_where_they_are_called() {
        let body = "<parse method='10'>\n<bc bci='4'/>\n<parse method='13'>\n</parse>\n<bc bci='6'/>\n<parse method='13'>\n</parse>\n</parse>\n\
            <late_inline method='12' inline_id='9'>\n<jvms bci='2' method='13'/>\n<jvms bci='6' method='10'/>\n</late_inline>\n\
            <parse method='12'>\n</parse>\n</task>";
        assert_eq!(call_lines(body), ["@ 4 int A.h()", "@ 6 int A.h()", "  @ 2 java.util.Map$Entry A.g()"]);
    }

    #[test]
    fn the_last_attempt_counts() {
        let body = "<parse method='10'>\n<bc bci='4'/>\n<parse method='13'>\n</parse>\n</parse>\n<failure reason='retry'/>\n\
            <parse method='10'>\n<bc bci='6'/>\n<parse method='12'>\n</parse>\n</parse>\n</task>";
        assert_eq!(call_lines(body), ["@ 6 java.util.Map$Entry A.g()"]);
    }

    #[test]
    fn calls_that_nest_too_deep_are_counted() {
        let (most, all) = (MOST_INLINED, 100_000);
        let parse = "<bc bci='1'/><parse method='11'>";
        let body = format!("<parse method='10'>{}{}</parse>", parse.repeat(all), "</parse>".repeat(all));
        let calls = Inlining.expanded_calls([HEAD, &body].concat().as_bytes());
        assert_eq!((calls.len(), calls[most - 1].depth as usize), (most + 1, most - 1));
        let last = String::from_utf8_lossy(&calls[most].function);
        assert_eq!(last, format!("[{} more calls, nested more than {most} deep]", all - most));
        // Each postponed call lists all of its callers.
        let callers: String = (0..2000).map(|_| "<jvms bci='1' method='11'/>").collect();
        let late = format!("<late_inline method='11'>{callers}</late_inline><parse method='11'></parse>");
        assert!(Inlining.expanded_calls([HEAD, &body, &late.repeat(50)].concat().as_bytes()).len() > most);
    }

    #[test]
    fn every_prefix_and_every_flipped_byte_is_read() {
        let body = "<parse method='10'><bc bci='4'/><parse method='11'><bc bci='7'/><parse method='12'></parse></parse></parse>\
            <late_inline method='13'><jvms bci='1' method='12'/><jvms bci='4' method='10'/></late_inline><parse method='13'></parse>";
        let text = [HEAD, body].concat();
        for at in 0..text.len() {
            assert!(Inlining.expanded_calls(&text.as_bytes()[..at]).len() <= 3);
            let mut bent = text.clone().into_bytes();
            bent[at] ^= 1 << (at % 8);
            assert!(Inlining.expanded_calls(&bent).len() <= 4);
        }
    }
}
