//! Parquet files: any bytes are read as far as they go, or refused.
#![no_main]

use jitgraft::error::Warnings;
use jitgraft::formats::options::ReadOptions;
use jitgraft::formats::tables::parquet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = parquet::read(bytes, &ReadOptions::default(), &mut Warnings::new());
});
