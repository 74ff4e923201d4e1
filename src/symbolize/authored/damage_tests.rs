//! Tests that a WebAssembly module truncated or corrupted at any byte is read without failing.

use super::AuthoredModule;
use crate::formats::wasm;
use crate::model::file_bytes::FileBytes;
use crate::test_effort::step;
use std::fs;
use std::rc::Rc;

/// The functions of `fib.rs`, ordered by number, with the lines that LLVM's tools report for them.
const FUNCTIONS: [(&str, &str); 3] = [("app::table::checksum", "20"), ("app::collatz", "9"), ("run", "30")];

/// The name and line of each function that can still be read from the module.
fn functions_of(bytes: Vec<u8>) -> Vec<String> {
    let Ok(module) = wasm::parse(&FileBytes::new(bytes)) else { return Vec::new() };
    let module = Rc::new(module);
    let numbers = 0..u32::try_from(module.bodies.len()).unwrap().min(10);
    let authored = AuthoredModule::new("", &[Rc::clone(&module)], numbers.clone().map(|number| (number, number)));
    let known =
        |number| authored.function(number).map(|(name, place)| format!("{name} {:?}", place.map(|place| place.line)));
    numbers.filter_map(known).collect()
}

#[test]
fn a_damaged_module_stops_nobody() {
    let whole = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/wasm-node/app.wasm")).unwrap();
    let named: Vec<String> = FUNCTIONS.iter().map(|(name, line)| format!("{name} Some({line})")).collect();
    assert_eq!(functions_of(whole.clone()), named);
    for at in (0..whole.len()).step_by(3 * step(5)) {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] ^= change;
            functions_of(damaged);
        }
        functions_of(whole[..at].to_vec());
    }
}
