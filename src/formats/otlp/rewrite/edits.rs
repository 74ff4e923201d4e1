//! Applies the planned changes to an encoded message.

use super::plan::{NewLine, Plan};
use crate::bytes::protobuf::{Fields, put_field};
use crate::error::Result;
use crate::formats::otlp::message::Message;
use crate::formats::otlp::messages::{FunctionMessage, LineMessage, StackMessage};
use crate::model::Pid;
use prost::encoding;

/// The encoded message with all changes of the plan.
pub(super) fn written(bytes: &[u8], message: &Message<'_>, plan: &Plan) -> Result<Vec<u8>> {
    let dictionaries = Fields::of(bytes).filter(|field| field.as_ref().is_ok_and(|(tag, _)| *tag == 2)).count();
    let (mut resource, mut dictionary, mut location) = (0, 0, 0);
    changed(bytes, |tag, value, out| match tag {
        1 => {
            let samples = stacks_of(message, resource);
            resource += 1;
            if plan.moved.is_empty() {
                return Ok(false);
            }
            let mut samples = samples.into_iter();
            let scopes = inside(value, 2, &mut |scope| {
                inside(scope, 2, &mut |profile| inside(profile, 2, &mut |sample| moved(sample, &mut samples, plan)))
            })?;
            put_field(1, &[&scopes], out);
            Ok(true)
        }
        2 => {
            dictionary += 1;
            let mut new = with_lines(value, &mut location, plan)?;
            if dictionary == dictionaries {
                behind(message, plan, &mut new);
            }
            put_field(2, &[&new], out);
            Ok(true)
        }
        _ => Ok(false),
    })
}

/// Copies a message field by field. `change` either writes a replacement and returns true, or returns false to keep the
/// field's bytes.
fn changed(bytes: &[u8], mut change: impl FnMut(u32, &[u8], &mut Vec<u8>) -> Result<bool>) -> Result<Vec<u8>> {
    let (mut out, mut start, mut fields) = (Vec::with_capacity(bytes.len()), 0, Fields::of(bytes));
    while let Some(field) = fields.next() {
        let (tag, value) = field?;
        let raw = bytes.get(start..fields.offset()).unwrap_or_default();
        start = fields.offset();
        if !change(tag, value.bytes(), &mut out)? {
            out.extend_from_slice(raw);
        }
    }
    Ok(out)
}

/// Replaces each submessage in the field `tag` by what `change` returns for it.
fn inside(bytes: &[u8], tag: u32, change: &mut dyn FnMut(&[u8]) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    changed(bytes, |of, value, out| {
        if of == tag {
            put_field(tag, &[&change(value)?], out);
        }
        Ok(of == tag)
    })
}

/// The stack and process of each sample of a resource, in order.
fn stacks_of(message: &Message<'_>, resource: usize) -> Vec<(u64, Option<Pid>)> {
    let mut stacks = Vec::new();
    if let Some(resource) = message.resources.get(resource) {
        message.samples_of(resource, &mut |sample| stacks.push((sample.stack, sample.pid)));
    }
    stacks
}

/// A sample with its new stack index, if the plan has one for it.
fn moved(sample: &[u8], samples: &mut dyn Iterator<Item = (u64, Option<Pid>)>, plan: &Plan) -> Result<Vec<u8>> {
    let Some(&new) = samples.next().and_then(|sample| plan.moved.get(&sample)) else { return Ok(sample.to_vec()) };
    changed(sample, |tag, _, out| {
        if tag == 1 {
            encoding::uint64::encode(tag, &new, out);
        }
        Ok(tag == 1)
    })
}

/// Adds the planned lines to the locations of a dictionary. `location` counts locations across all dictionaries of the
/// message.
fn with_lines(dictionary: &[u8], location: &mut u64, plan: &Plan) -> Result<Vec<u8>> {
    changed(dictionary, |tag, value, out| {
        let at = *location;
        *location += u64::from(tag == 2);
        let Some(lines) = plan.lines.get(&at).filter(|_| tag == 2) else { return Ok(false) };
        put_field(2, &[value, &encoded(lines)], out);
        Ok(true)
    })
}

fn encoded(lines: &[NewLine]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        let message = LineMessage { function_index: line.function as i32, line: line.line.into() };
        encoding::message::encode(3, &message, &mut out);
    }
    out
}

/// Appends the new entries to the last dictionary.
fn behind(message: &Message<'_>, plan: &Plan, out: &mut Vec<u8>) {
    for (location, lines) in &plan.copies {
        let of = usize::try_from(*location).ok().and_then(|at| message.dictionary.locations.get(at));
        put_field(2, &[of.map_or(&[][..], |of| of.message), &encoded(lines)], out);
    }
    if message.dictionary.functions.is_empty() && !plan.functions.items().is_empty() {
        // The first element of a table means "none".
        put_field(3, &[], out);
    }
    for function in plan.functions.items() {
        let (name, file) = (function.name as i32, function.file as i32);
        let message = FunctionMessage { name_strindex: name, filename_strindex: file, ..FunctionMessage::default() };
        encoding::message::encode(3, &message, out);
    }
    for string in plan.strings.items() {
        encoding::string::encode(5, string, out);
    }
    for stack in plan.stacks.items() {
        let location_indices = stack.iter().map(|at| *at as i32).collect();
        encoding::message::encode(7, &StackMessage { location_indices }, out);
    }
}
