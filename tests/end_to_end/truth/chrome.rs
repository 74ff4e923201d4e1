//! `chrome`: whole spans; which lies in which is recognized by their times alone, as viewers do it.

use super::told::{Frame, Stack, Told};
use serde_json::Value;
use std::collections::BTreeMap;

struct Span {
    start: u64,
    end: u64,
    frame: Frame,
    samples: u64,
    /// The weight of the event, where that is not time.
    weight: Option<u64>,
}

/// Nanoseconds, from microseconds with decimals.
fn nanos(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1000.0).round() as u64
}

pub(crate) fn read(text: &[u8], _: &[String]) -> Vec<Told> {
    let document: Value = serde_json::from_slice(text).unwrap();
    let mut threads: BTreeMap<(i64, i64), Vec<Span>> = BTreeMap::new();
    for event in document["traceEvents"].as_array().unwrap() {
        if event["ph"] != "X" {
            // Names, and what happened at one moment.
            assert!(event["ph"] == "M" || event["ph"] == "i", "{event}");
            continue;
        }
        let args = &event["args"];
        let (start, duration) = (nanos(&event["ts"]), nanos(&event["dur"]));
        let frame = Frame {
            name: event["name"].as_str().unwrap().to_owned(),
            module: args["module"].as_str().map(str::to_owned),
        };
        let thread = (event["pid"].as_i64().unwrap(), event["tid"].as_i64().unwrap());
        threads.entry(thread).or_default().push(Span {
            start,
            end: start + duration,
            frame,
            samples: args["samples"].as_u64().unwrap(),
            weight: args["weight"].as_u64(),
        });
    }
    let unit = document["otherData"]["unit"].as_str().map(str::to_owned);
    let mut told = Told { unit, samples: Some(0), ..Told::default() };
    for spans in threads.into_values() {
        thread(spans, &mut told);
    }
    vec![told]
}

/// Every span becomes a stack that weighs what its callees leave it.
fn thread(mut spans: Vec<Span>, told: &mut Told) {
    // Equal spans stay in the order of the file: the outer one first.
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    // Open spans: end, weight left, samples left.
    let mut open: Vec<(u64, u64, u64)> = Vec::new();
    let mut frames: Vec<Frame> = Vec::new();
    let mut close = |open: &mut Vec<(u64, u64, u64)>, frames: &mut Vec<Frame>| {
        let (_, weight, samples) = open.pop().unwrap();
        told.samples = told.samples.map(|count| count + samples);
        told.stacks.push(Stack { frames: frames.clone(), weight });
        frames.pop();
    };
    for span in spans {
        while open.last().is_some_and(|(end, ..)| *end <= span.start) {
            close(&mut open, &mut frames);
        }
        let weight = span.weight.unwrap_or(span.end - span.start);
        if let Some((end, left, samples)) = open.last_mut() {
            assert!(span.end <= *end, "{:?} ends after the span around it", span.frame);
            *left -= weight;
            *samples -= span.samples;
        }
        open.push((span.end, weight, span.samples));
        frames.push(span.frame);
    }
    while !open.is_empty() {
        close(&mut open, &mut frames);
    }
}
