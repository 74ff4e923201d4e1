//! Parquet files: any bytes are read as far as they go, or refused.

use crate::contract::options::ReadOptions;
use crate::error::Skipped;
use crate::formats::tables::parquet::open;

pub(super) fn parquet(bytes: &[u8]) {
    let Ok(groups) = open(bytes, &ReadOptions::default()) else { return };
    (0..groups.count()).for_each(|group| drop(groups.read(group, &mut Skipped::new(groups.what()))));
}
