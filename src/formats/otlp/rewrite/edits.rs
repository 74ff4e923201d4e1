//! Applies the planned changes to an encoded message.

use super::plan::{NewLine, Plan};
use crate::bytes::protobuf::{Fields, put_field};
use crate::error::Result;
use crate::formats::otlp::message::Message;
use crate::formats::otlp::messages::{FunctionMessage, LineMessage, StackMessage};
use crate::model::Pid;
use prost::encoding;

/// The encoded message with all changes of the plan.
pub(super) fn apply(bytes: &[u8], message: &Message<'_>, plan: &Plan) -> Result<Vec<u8>> {
    let dictionaries = Fields::of(bytes).filter(|field| field.as_ref().is_ok_and(|(tag, _)| *tag == 2)).count();
    let (mut resource, mut dictionary, mut location) = (0, 0, 0);
    change_fields(bytes, |tag, value, out| match tag {
        1 => {
            let stacks = sample_stacks(message, resource);
            resource += 1;
            if plan.moved.is_empty() {
                return Ok(false);
            }
            put_field(1, &[&move_resource(value, stacks, plan)?], out);
            Ok(true)
        }
        2 => {
            dictionary += 1;
            let mut new = add_lines(value, &mut location, plan)?;
            if dictionary == dictionaries {
                append_entries(message, plan, &mut new);
            }
            put_field(2, &[&new], out);
            Ok(true)
        }
        _ => Ok(false),
    })
}

/// A resource with the new stack indices of its samples. `stacks` has the old index and the process of each sample, in
/// order.
fn move_resource(resource: &[u8], stacks: Vec<(u64, Option<Pid>)>, plan: &Plan) -> Result<Vec<u8>> {
    let mut stacks = stacks.into_iter();
    let mut change_sample = |sample: &[u8]| move_sample(sample, &mut stacks, plan);
    let mut change_profile = |profile: &[u8]| change_messages(profile, 2, &mut change_sample);
    let mut change_scope = |scope: &[u8]| change_messages(scope, 2, &mut change_profile);
    change_messages(resource, 2, &mut change_scope)
}

/// Copies a message field by field. `change` either writes a replacement and returns true, or returns false to keep the
/// field's bytes.
fn change_fields(bytes: &[u8], mut change: impl FnMut(u32, &[u8], &mut Vec<u8>) -> Result<bool>) -> Result<Vec<u8>> {
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
fn change_messages(bytes: &[u8], tag: u32, change: &mut dyn FnMut(&[u8]) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    change_fields(bytes, |number, value, out| {
        if number != tag {
            return Ok(false);
        }
        put_field(tag, &[&change(value)?], out);
        Ok(true)
    })
}

/// The stack and process of each sample of a resource, in order.
fn sample_stacks(message: &Message<'_>, resource: usize) -> Vec<(u64, Option<Pid>)> {
    let mut stacks = Vec::new();
    if let Some(resource) = message.resources.get(resource) {
        message.for_each_sample(resource, &mut |sample| stacks.push((sample.stack, sample.pid)));
    }
    stacks
}

/// A sample with its new stack index, if the plan has one for it.
fn move_sample(sample: &[u8], stacks: &mut dyn Iterator<Item = (u64, Option<Pid>)>, plan: &Plan) -> Result<Vec<u8>> {
    let Some(&new) = stacks.next().and_then(|stack| plan.moved.get(&stack)) else { return Ok(sample.to_vec()) };
    change_fields(sample, |tag, _, out| {
        if tag != 1 {
            return Ok(false);
        }
        encoding::uint64::encode(tag, &new, out);
        Ok(true)
    })
}

/// Adds the planned lines to the locations of a dictionary. `location` counts locations across all dictionaries of the
/// message.
fn add_lines(dictionary: &[u8], location: &mut u64, plan: &Plan) -> Result<Vec<u8>> {
    change_fields(dictionary, |tag, value, out| {
        if tag != 2 {
            return Ok(false);
        }
        let lines = plan.lines.get(location);
        *location += 1;
        let Some(lines) = lines else { return Ok(false) };
        put_field(2, &[value, &encode_lines(lines)], out);
        Ok(true)
    })
}

fn encode_lines(lines: &[NewLine]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        let message = LineMessage { function_index: line.function as i32, line: line.line.into() };
        encoding::message::encode(3, &message, &mut out);
    }
    out
}

/// Appends the new entries to the last dictionary.
fn append_entries(message: &Message<'_>, plan: &Plan, out: &mut Vec<u8>) {
    for (location, lines) in &plan.copies {
        let original = usize::try_from(*location).ok().and_then(|index| message.dictionary.locations.get(index));
        let original = original.map_or(&[][..], |location| location.message);
        put_field(2, &[original, &encode_lines(lines)], out);
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
