//! Parquet files: any bytes are read as far as they go, or refused.

use jitgraft::contract::options::ReadOptions;
use jitgraft::error::Warnings;
use jitgraft::formats::tables::parquet::read;

pub(super) fn parquet(bytes: &[u8]) {
    let _ = read(bytes, &ReadOptions::default(), &mut Warnings::new());
}
