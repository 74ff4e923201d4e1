//! A real browser for tests of pages: Chromium without a window, driven through its DevTools protocol.
//!
//! The messages are JSON over a WebSocket, which the crate tungstenite speaks. (A crate that wraps the whole protocol
//! in types, headless_chrome, was tried: 62 more packages, a TLS library among them, where this takes ten, 2.4 GB of
//! memory to compile it, and what the browser states in words that the crate does not know yet is dropped in silence.)
//!
//! A page is opened from disk, with the network off. Console output, exceptions and network requests of the page fail
//! the test that holds it, when it is dropped. Nothing waits longer than [`DEADLINE`].

pub(crate) mod connection;
pub(crate) mod page;
mod program;

pub(crate) use page::Page;

use std::time::Duration;

/// The longest time that a test waits for anything. It is generous: the machine may be busy with other tests.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
