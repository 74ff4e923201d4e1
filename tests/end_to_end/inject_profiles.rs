//! `jitgraft inject` of profiles that hold bare addresses: pprof, OpenTelemetry's and Firefox Profiler's, made of real recordings by
//! leaving the names out.

mod firefox;
mod memory;
mod otlp;
mod pprof;
mod profiler_cli;
use crate::support::protobuf;
mod recorded;
