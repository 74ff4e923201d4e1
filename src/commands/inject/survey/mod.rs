//! The recording as it is before anything is changed.

pub(in crate::commands) mod input;
