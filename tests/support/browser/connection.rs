//! Calls and events of the DevTools protocol, <https://chromedevtools.github.io/devtools-protocol/>, and of WebDriver
//! BiDi, whose messages look alike.

use super::DEADLINE;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tungstenite::{Error, Message, WebSocket};

/// The duration of one look for a message.
const LOOK: Duration = Duration::from_millis(50);

/// A connection to the browser, and what it reported without being queried.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: WebSocket<TcpStream>,
    calls: u64,
    /// The session of a page; without one the browser itself is called.
    session: Option<String>,
    /// Names and parameters of the events, in their order.
    pub(crate) events: Vec<(String, Value)>,
}

impl Connection {
    pub(crate) fn open(port: u16, path: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(LOOK)).unwrap();
        let url = format!("ws://127.0.0.1:{port}{path}");
        let mut shaking = tungstenite::client(url, stream);
        let socket = loop {
            match shaking {
                Ok((socket, _)) => break socket,
                Err(tungstenite::HandshakeError::Interrupted(middle)) => shaking = middle.handshake(),
                Err(error) => panic!("the browser's socket: {error}"),
            }
        };
        Self { socket, calls: 0, session: None, events: Vec::new() }
    }

    /// From now on calls go to this page's session.
    pub(super) fn attach(&mut self, session: &str) {
        self.session = Some(session.to_owned());
    }

    /// Calls a method and returns its result. An error of the protocol is a defect of the test.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.try_call(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Calls a method of the browser itself.
    pub(crate) fn call_browser(&mut self, method: &str, parameters: Value) -> Value {
        let session = self.session.take();
        let answer = self.call(method, parameters);
        self.session = session;
        answer
    }

    /// The same as [`Self::call`] where an error is expected, such as that a page is being left.
    pub(crate) fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < DEADLINE, "no answer to {method} within {DEADLINE:?}");
            match self.read() {
                Some(mut answer) if answer["id"] == id => {
                    return if answer["error"].is_null() {
                        Ok(answer["result"].take())
                    } else {
                        Err(answer["error"].take())
                    };
                }
                Some(event) => self.keep(event),
                None => {}
            }
        }
    }

    fn keep(&mut self, mut event: Value) {
        if let Some(name) = event["method"].as_str().map(str::to_owned) {
            self.events.push((name, event["params"].take()));
        }
    }

    /// The next message, if one comes soon.
    fn read(&mut self) -> Option<Value> {
        match self.socket.read() {
            Ok(Message::Text(text)) => Some(serde_json::from_str(&text).unwrap()),
            Ok(_) => None,
            Err(Error::Io(error)) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => None,
            Err(error) => panic!("the browser ended: {error}"),
        }
    }
}
