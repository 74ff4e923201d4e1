//! `pprof`: gzip around a protocol buffer; only the wire format is known here (profile.proto).

use super::told::{Frame, Stack, Told};
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read;

/// Field number → values, as varints or bytes.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) numbers: BTreeMap<u64, Vec<u64>>,
    pub(crate) bytes: BTreeMap<u64, Vec<Vec<u8>>>,
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

impl Message {
    pub(crate) fn parse(mut bytes: &[u8]) -> Self {
        let mut message = Self::default();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            match key & 7 {
                0 => message.numbers.entry(key >> 3).or_default().push(varint(&mut bytes)),
                1 => {
                    let (number, rest) = bytes.split_first_chunk().unwrap();
                    bytes = rest;
                    message.numbers.entry(key >> 3).or_default().push(u64::from_le_bytes(*number));
                }
                2 => {
                    let len = varint(&mut bytes) as usize;
                    let (field, rest) = bytes.split_at(len);
                    bytes = rest;
                    message.bytes.entry(key >> 3).or_default().push(field.to_vec());
                }
                other => panic!("wire type {other}"),
            }
        }
        message
    }

    pub(crate) fn number(&self, field: u64) -> u64 {
        self.numbers.get(&field).map_or(0, |values| *values.last().unwrap())
    }

    pub(crate) fn messages(&self, field: u64) -> Vec<Self> {
        self.bytes.get(&field).into_iter().flatten().map(|bytes| Self::parse(bytes)).collect()
    }

    /// A repeated number, packed or not.
    pub(crate) fn list(&self, field: u64) -> Vec<u64> {
        let mut list = self.numbers.get(&field).cloned().unwrap_or_default();
        for packed in self.bytes.get(&field).into_iter().flatten() {
            let mut rest = &packed[..];
            while !rest.is_empty() {
                list.push(varint(&mut rest));
            }
        }
        list
    }
}

/// A whole file.
pub(crate) struct File {
    pub(crate) message: Message,
    pub(crate) strings: Vec<String>,
}

impl File {
    pub(crate) fn parse(packed: &[u8]) -> Self {
        let mut bytes = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        let message = Message::parse(&bytes);
        let strings = message.bytes[&6].iter().map(|text| String::from_utf8(text.clone()).unwrap()).collect();
        Self { message, strings }
    }

    pub(crate) fn text(&self, message: &Message, field: u64) -> String {
        self.strings[message.number(field) as usize].clone()
    }

    fn by_id(&self, field: u64) -> BTreeMap<u64, Message> {
        self.message.messages(field).into_iter().map(|message| (message.number(1), message)).collect()
    }
}

pub(crate) fn read(packed: &[u8], _: &[String]) -> Vec<Told> {
    let file = File::parse(packed);
    let (mappings, locations, functions) = (file.by_id(3), file.by_id(4), file.by_id(5));
    let frames = |id: u64| {
        let location = &locations[&id];
        let module = mappings.get(&location.number(2)).map(|mapping| file.text(mapping, 5));
        let mut lines = location.messages(4);
        // The innermost inlined call comes first.
        lines.reverse();
        let name = |line: &Message| file.text(&functions[&line.number(1)], 2);
        let frames = lines.iter().map(|line| Frame { name: name(line), module: module.clone() });
        frames.collect::<Vec<_>>()
    };
    let types = file.message.messages(1);
    let samples = file.message.messages(2);
    let is_a_count = |of: &Message| {
        let name = file.text(of, 1);
        (name == "samples" || name.ends_with(":samples")) && file.text(of, 2) == "count"
    };
    let event = |weights: usize, counts: Option<usize>| {
        let unit = Some(file.text(&types[weights], 2)).filter(|unit| unit != "count");
        let mut told = Told { unit, samples: counts.map(|_| 0), ..Told::default() };
        for sample in &samples {
            let values = sample.list(2);
            told.samples = told.samples.zip(counts).map(|(sum, at)| sum + values[at]);
            let stack = sample.list(1).into_iter().rev().flat_map(frames).collect();
            told.stacks.push(Stack { frames: stack, weight: values[weights] });
        }
        told
    };
    let (mut events, mut at) = (Vec::new(), 0);
    while at < types.len() {
        // A number of samples precedes the weights; where it is all there is, it is the weight.
        let is_of_next = types.get(at + 1).is_none_or(|next| !is_a_count(next));
        let counts = (is_a_count(&types[at]) && is_of_next).then_some(at);
        at += usize::from(counts.is_some() && at + 1 < types.len());
        events.push(event(at, counts));
        at += 1;
    }
    events
}
