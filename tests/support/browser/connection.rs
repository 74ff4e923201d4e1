//! Calls and events of the DevTools protocol, <https://chromedevtools.github.io/devtools-protocol/>. WebDriver BiDi
//! works too, because its messages look alike.

use super::DEADLINE;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tungstenite::{Error, Message, WebSocket};

/// How long one attempt to read a message may take.
const LOOK: Duration = Duration::from_millis(50);

/// A connection to the browser, and the events that it has sent.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: WebSocket<TcpStream>,
    calls: u64,
    /// The session of a page. `None` calls the browser itself.
    session: Option<String>,
    /// Names and parameters of events, in order.
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

    /// Directs further calls to the session of a page.
    pub(super) fn attach(&mut self, session: &str) {
        self.session = Some(session.to_owned());
    }

    /// Calls a method and returns its result. Panics on errors, since they are bugs of the test.
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

    /// Like [`Self::call`], but returns errors. They are normal while a page is being left, for example.
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

    /// The next message, if one arrives soon.
    fn read(&mut self) -> Option<Value> {
        match self.socket.read() {
            Ok(Message::Text(text)) => Some(serde_json::from_str(&text).unwrap()),
            Ok(_) => None,
            Err(Error::Io(error)) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => None,
            Err(error) => panic!("the browser ended: {error}"),
        }
    }
}
