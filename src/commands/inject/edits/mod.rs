//! What is changed in the stream of records.

pub(in crate::commands) mod build_ids;
pub(in crate::commands) mod mapping_records;
pub(in crate::commands) mod samples;
