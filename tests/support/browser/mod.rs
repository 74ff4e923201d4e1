//! A real browser for tests of pages: Chromium without a window, controlled through its DevTools protocol.
//!
//! The messages are JSON over a WebSocket, for which we use the crate tungstenite. We tried headless_chrome, which has
//! types for the whole protocol: it needs 62 more packages (with a TLS library) instead of ten, takes 2.4 GB of memory
//! to compile, and silently drops messages with values that it doesn't know yet.
//!
//! Pages are opened from disk without network access. When a page is dropped, its test fails if the page has printed to
//! the console, thrown an exception or requested anything from the network. Nothing waits longer than [`DEADLINE`].

pub(crate) mod connection;
pub(crate) mod page;
mod program;

pub(crate) use page::Page;

use std::time::Duration;

/// The longest time to wait for anything. It is long because other tests may keep the machine busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
