//! `json`: every sample with all that is known of it.

use super::told::{Frame, Stack, Told};
use serde_json::Value;

pub(crate) fn read(text: &[u8], _: &[String]) -> Vec<Told> {
    let document: Value = serde_json::from_slice(text).unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let frame = |frame: &Value| Frame { name: text(&frame["name"]).unwrap(), module: text(&frame["module"]) };
    let frames: Vec<Frame> = document["frames"].as_array().unwrap().iter().map(frame).collect();
    let stack = |row: &Value| Stack {
        frames: row["frames"]
            .as_array()
            .unwrap()
            .iter()
            .map(|at| frames[at.as_u64().unwrap() as usize].clone())
            .collect(),
        weight: row["weight"].as_u64().unwrap(),
    };
    let event = |event: &Value| {
        let rows = event["stacks"].as_array().unwrap();
        Told {
            unit: text(&event["unit"]),
            samples: Some(rows.iter().map(|row| row["count"].as_u64().unwrap()).sum()),
            rows: Some(rows.len() as u64),
            stacks: rows.iter().map(stack).collect(),
            graph: None,
        }
    };
    document["events"].as_array().unwrap().iter().map(event).collect()
}
