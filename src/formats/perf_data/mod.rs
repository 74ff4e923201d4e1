//! perf.data: header, attrs, records, features; read in file, pipe and directory form, and rewritten.
