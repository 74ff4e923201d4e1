//! `jitgraft inject` of profiles that hold bare addresses: pprof, OpenTelemetry's and Firefox Profiler's, made of real recordings by
//! leaving the names out.

#[path = "inject_profiles/firefox.rs"]
mod firefox;
#[path = "inject_profiles/memory.rs"]
mod memory;
#[path = "inject_profiles/otlp.rs"]
mod otlp;
#[path = "inject_profiles/pprof.rs"]
mod pprof;
#[path = "inject_profiles/profiler_cli.rs"]
mod profiler_cli;
#[path = "support/protobuf.rs"]
mod protobuf;
#[path = "inject_profiles/recorded.rs"]
mod recorded;
