//! `speedscope`: sampled profiles, one a thread of an event; those of one event begin with its name.

use super::told::{Frame, Stack, Told};
use serde_json::Value;

pub(crate) fn read(text: &[u8], names: &[String]) -> Vec<Told> {
    let document: Value = serde_json::from_slice(text).unwrap();
    let frames = document["shared"]["frames"].as_array().unwrap();
    let frame = |at: &Value| {
        let name = frames[at.as_u64().unwrap() as usize]["name"].as_str().unwrap();
        Frame { name: name.to_owned(), module: None }
    };
    let mut events: Vec<(String, Told)> = Vec::new();
    for profile in document["profiles"].as_array().unwrap() {
        let name = profile["name"].as_str().unwrap();
        // `EVENT THREAD`, in files of several events.
        let begins = |event: &&String| names.len() > 1 && name.starts_with(&format!("{event} "));
        let event = names.iter().find(begins).cloned().unwrap_or_default();
        if events.last().is_none_or(|(last, _)| *last != event) {
            events.push((event, Told { rows: Some(0), ..Told::default() }));
        }
        let told = &mut events.last_mut().unwrap().1;
        let unit = profile["unit"].as_str().unwrap();
        told.unit = (unit != "none").then(|| unit.to_owned());
        let (samples, weights) = (profile["samples"].as_array().unwrap(), profile["weights"].as_array().unwrap());
        assert_eq!(samples.len(), weights.len());
        told.rows = told.rows.map(|count| count + samples.len() as u64);
        let mut sum = 0;
        for (stack, weight) in samples.iter().zip(weights) {
            let weight = weight.as_u64().unwrap();
            sum += weight;
            told.stacks.push(Stack { frames: stack.as_array().unwrap().iter().map(frame).collect(), weight });
        }
        let [start, end] = ["startValue", "endValue"].map(|key| profile[key].as_u64().unwrap());
        assert_eq!(end - start, sum, "speedscope shows weights from startValue to endValue");
    }
    events.into_iter().map(|(_, told)| told).collect()
}
