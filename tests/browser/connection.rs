//! Calls and events of the DevTools protocol: <https://chromedevtools.github.io/devtools-protocol/>.

use super::DEADLINE;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tungstenite::{Error, Message, WebSocket};

/// How long one look for a message takes.
const LOOK: Duration = Duration::from_millis(50);

/// A connection to the browser, and what it told of without being asked.
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
    pub(super) fn open(port: u16, path: &str) -> Self {
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
        let session = self.session.clone();
        self.call_in(session, method, parameters)
    }

    /// Calls a method of the browser itself.
    pub(crate) fn call_browser(&mut self, method: &str, parameters: Value) -> Value {
        self.call_in(None, method, parameters)
    }

    fn call_in(&mut self, session: Option<String>, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < DEADLINE, "no answer to {method} within {DEADLINE:?}");
            match self.read() {
                Some(mut answer) if answer["id"] == id => {
                    assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                    return answer["result"].take();
                }
                Some(event) => self.keep(event),
                None => {}
            }
        }
    }

    /// Waits for an event that was not there before the last [`Self::forget`].
    pub(crate) fn wait_for(&mut self, name: &str) {
        let started = Instant::now();
        while !self.events.iter().any(|(event, _)| event == name) {
            assert!(started.elapsed() < DEADLINE, "no {name} within {DEADLINE:?}");
            if let Some(event) = self.read() {
                self.keep(event);
            }
        }
    }

    /// Forgets the events of a name.
    pub(crate) fn forget(&mut self, name: &str) {
        self.events.retain(|(event, _)| event != name);
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
