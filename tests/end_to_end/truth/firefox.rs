//! `firefox`: tables of each thread, samples with weights in milliseconds or numbers.

use super::told::{Frame, Stack, Told};
use serde_json::Value;

fn index(column: &Value, at: usize) -> Option<usize> {
    column[at].as_u64().map(|at| at as usize)
}

pub(crate) fn read(text: &[u8], _: &[String]) -> Vec<Told> {
    let document: Value = serde_json::from_slice(text).unwrap();
    let mut told = Told { rows: Some(0), ..Told::default() };
    for thread in document["threads"].as_array().unwrap() {
        let samples = &thread["samples"];
        let traced = samples["weightType"] == "tracing-ms";
        told.unit = traced.then(|| "nanoseconds".to_owned());
        let (stacks, weights) = (samples["stack"].as_array().unwrap(), samples["weight"].as_array().unwrap());
        assert_eq!(stacks.len(), weights.len());
        assert_eq!(Some(stacks.len() as u64), samples["length"].as_u64());
        told.rows = told.rows.map(|count| count + stacks.len() as u64);
        for (stack, weight) in stacks.iter().zip(weights) {
            let weight = weight.as_f64().unwrap() * if traced { 1e6 } else { 1.0 };
            let frames = frames(&document, thread, stack.as_u64().map(|at| at as usize));
            told.stacks.push(Stack { frames, weight: weight.round() as u64 });
        }
    }
    vec![told]
}

fn frames(document: &Value, thread: &Value, mut stack: Option<usize>) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some(at) = stack {
        let frame = index(&thread["stackTable"]["frame"], at).unwrap();
        frames.push(function(document, thread, index(&thread["frameTable"]["func"], frame).unwrap()));
        stack = index(&thread["stackTable"]["prefix"], at);
    }
    frames.reverse();
    frames
}

/// Name and library of a function.
fn function(document: &Value, thread: &Value, at: usize) -> Frame {
    let name = index(&thread["funcTable"]["name"], at).unwrap();
    let resource = thread["funcTable"]["resource"][at].as_i64().unwrap();
    let library = usize::try_from(resource).ok().and_then(|at| index(&thread["resourceTable"]["lib"], at));
    let path = library.map(|at| document["libs"][at]["path"].as_str().unwrap().to_owned());
    Frame { name: thread["stringArray"][name].as_str().unwrap().to_owned(), module: path }
}
