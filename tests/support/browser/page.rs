//! A page in a browser: opens it from disk, looks at it, and uses it with mouse and keyboard as a person would.

use super::DEADLINE;
use super::connection::Connection;
use super::program::Program;
use serde_json::{Value, json};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The default size of the window.
pub(crate) const WINDOW: (u32, u32) = (1400, 900);

/// The control key as a modifier, numbered as in the DevTools protocol.
pub(crate) const CONTROL: u32 = 2;
/// The shift key as a modifier.
pub(crate) const SHIFT: u32 = 8;

/// A page in its own browser.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) connection: Connection,
    /// Modifier keys that are held during mouse actions.
    pub(crate) held: u32,
    _program: Program,
}

impl Page {
    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(file: &Path) -> Self {
        let mut page = Self::blank();
        page.go_to(&format!("file://{}", file.canonicalize().unwrap().display()));
        page
    }

    /// Opens an empty page.
    pub(crate) fn blank() -> Self {
        let mut program = Program::start();
        let (port, path) = program.socket();
        let mut connection = Connection::open(port, &path);
        let target = connection.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = connection.call("Target.attachToTarget", attach);
        connection.attach(session["sessionId"].as_str().unwrap());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            connection.call(&format!("{domain}.enable"), json!({}));
        }
        let offline = json!({ "offline": true, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        connection.call("Network.emulateNetworkConditions", offline);
        let mut page = Self { connection, held: 0, _program: program };
        page.resize(WINDOW);
        page
    }

    /// Resizes the window.
    pub(crate) fn resize(&mut self, (width, height): (u32, u32)) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.connection.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Opens an address and waits until it is loaded.
    pub(crate) fn go_to(&mut self, url: &str) {
        self.load_by("Page.navigate", json!({ "url": url }));
    }

    /// Reloads the page, like the browser's button.
    pub(crate) fn reload(&mut self) {
        self.load_by("Page.reload", json!({}));
    }

    /// Calls a method that loads a page, and waits for the new page. The old page is marked, so that we can tell them
    /// apart.
    fn load_by(&mut self, method: &str, parameters: Value) {
        self.evaluate("window.isLeft = true");
        let answer = self.connection.call(method, parameters);
        assert!(answer.get("errorText").is_none(), "{method}: {answer}");
        let loaded = json!({ "expression": "!window.isLeft && document.readyState === 'complete'" });
        let started = Instant::now();
        loop {
            // The call fails if the old page goes away meanwhile.
            let answer = self.connection.try_call("Runtime.evaluate", loaded.clone()).unwrap_or_default();
            if answer["result"]["value"] == true {
                return;
            }
            assert!(started.elapsed() < DEADLINE, "{method}: not loaded within {DEADLINE:?}");
            sleep(Duration::from_millis(10));
        }
    }

    /// Sets the system's color scheme: `dark` or `light`.
    pub(crate) fn prefer(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.connection.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Evaluates a JavaScript expression. If it is a promise, waits for its value.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let question = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.connection.call("Runtime.evaluate", question);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// Evaluates a JavaScript expression that is a string.
    pub(crate) fn text(&mut self, expression: &str) -> String {
        let value = self.evaluate(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression} is {value}")).to_owned()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_until(&mut self, expression: &str) {
        let started = Instant::now();
        while self.evaluate(&format!("!!({expression})")) != true {
            assert!(started.elapsed() < DEADLINE, "not within {DEADLINE:?}: {expression}");
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the page has been redrawn.
    pub(crate) fn settle(&mut self) {
        self.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(0))))");
    }

    /// Moves the mouse.
    pub(crate) fn point_at(&mut self, (x, y): (f64, f64)) {
        self.mouse("mouseMoved", (x, y), json!({}));
        self.settle();
    }

    /// Clicks with the main button.
    pub(crate) fn click(&mut self, place: (f64, f64)) {
        self.click_times(place, 1);
    }

    /// Double-clicks with the main button.
    pub(crate) fn double_click(&mut self, place: (f64, f64)) {
        self.click_times(place, 1);
        self.click_times(place, 2);
    }

    fn click_times(&mut self, place: (f64, f64), count: u32) {
        let button = json!({ "button": "left", "clickCount": count });
        self.mouse("mouseMoved", place, json!({}));
        self.mouse("mousePressed", place, button.clone());
        self.mouse("mouseReleased", place, button);
        self.settle();
    }

    /// Clicks with the right button, which opens a menu.
    pub(crate) fn menu_at(&mut self, place: (f64, f64)) {
        let button = json!({ "button": "right", "clickCount": 1 });
        self.mouse("mouseMoved", place, json!({}));
        self.mouse("mousePressed", place, button.clone());
        self.mouse("mouseReleased", place, button);
        self.settle();
    }

    /// Drags the mouse with the main button held.
    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        let button = json!({ "button": "left", "buttons": 1, "clickCount": 1 });
        self.mouse("mouseMoved", from, json!({}));
        self.mouse("mousePressed", from, button.clone());
        for step in 1..=4 {
            let part = f64::from(step) / 4.0;
            let place = (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part);
            self.mouse("mouseMoved", place, json!({ "button": "left", "buttons": 1 }));
        }
        self.mouse("mouseReleased", to, button);
        self.settle();
    }

    /// Turns the mouse wheel. Positive amounts scroll down.
    pub(crate) fn wheel(&mut self, place: (f64, f64), down: f64) {
        self.mouse("mouseWheel", place, json!({ "deltaX": 0, "deltaY": down }));
        self.settle();
    }

    fn mouse(&mut self, sort: &str, (x, y): (f64, f64), more: Value) {
        let mut event = json!({ "type": sort, "x": x, "y": y, "modifiers": self.held });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.connection.call("Input.dispatchMouseEvent", event);
    }

    /// Clicks in the middle of the first element that matches a selector.
    pub(crate) fn click_on(&mut self, selector: &str) {
        let middle = self.middle_of(selector);
        self.click(middle);
    }

    /// The middle of the first element that matches a selector. Scrolls to the element.
    pub(crate) fn middle_of(&mut self, selector: &str) -> (f64, f64) {
        let [left, top, width, height] = self.edges_of(selector);
        (left + width / 2.0, top + height / 2.0)
    }

    /// Left, top, width and height of the first element that matches a selector. Scrolls to the element.
    pub(crate) fn edges_of(&mut self, selector: &str) -> [f64; 4] {
        let find = format!("document.querySelector({})", json!(selector));
        assert_eq!(self.evaluate(&format!("!!{find}")), true, "no {selector}");
        let edges = self.evaluate(&format!(
            "{{ const element = {find}; element.scrollIntoView({{ block: 'nearest', behavior: 'instant' }}); \
             const edge = element.getBoundingClientRect(); [edge.left, edge.top, edge.width, edge.height] }}"
        ));
        [0, 1, 2, 3].map(|at| edges[at].as_f64().unwrap())
    }

    /// Types a text into the focused element.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.connection.call("Input.insertText", json!({ "text": text }));
        self.settle();
    }

    /// Presses a key: a letter, a sign, or the browser's name for the key.
    pub(crate) fn press(&mut self, key: &str) {
        self.press_with(0, key);
    }

    /// Presses a key while modifier keys are held.
    pub(crate) fn press_with(&mut self, held: u32, key: &str) {
        let number = number_of(key);
        let mut event = json!({ "key": key, "windowsVirtualKeyCode": number, "modifiers": held, "type": "keyDown" });
        if let Some(text) = text_of(key).filter(|_| held & !SHIFT == 0) {
            event["text"] = text.into();
        }
        self.connection.call("Input.dispatchKeyEvent", event);
        let up = json!({ "key": key, "windowsVirtualKeyCode": number, "modifiers": held, "type": "keyUp" });
        self.connection.call("Input.dispatchKeyEvent", up);
        self.settle();
    }

    /// Red, green and blue of a canvas at a point of the window. The canvas is copied first: reading it directly would
    /// slow it down from then on, and Chromium would complain.
    pub(crate) fn color_in(&mut self, canvas: &str, (x, y): (f64, f64)) -> [u64; 3] {
        let pixel = self.evaluate(&format!(
            "{{ const canvas = document.querySelector({}), edge = canvas.getBoundingClientRect(); \
             const scale = canvas.width / edge.width; \
             const pen = new OffscreenCanvas(1, 1).getContext('2d', {{ willReadFrequently: true }}); \
             pen.drawImage(canvas, -Math.floor(({x} - edge.left) * scale), -Math.floor(({y} - edge.top) * scale)); \
             Array.from(pen.getImageData(0, 0, 1, 1).data) }}",
            json!(canvas)
        ));
        [0, 1, 2].map(|at| pixel[at].as_u64().unwrap())
    }

    /// The number of different colors in a canvas.
    pub(crate) fn colors_of(&mut self, canvas: &str) -> u64 {
        let count = self.evaluate(&format!(
            "{{ const canvas = document.querySelector({}), {{ width, height }} = canvas; \
             const pen = new OffscreenCanvas(width, height).getContext('2d', {{ willReadFrequently: true }}); \
             pen.drawImage(canvas, 0, 0); \
             new Set(new Uint32Array(pen.getImageData(0, 0, width, height).data.buffer)).size }}",
            json!(canvas)
        ));
        count.as_u64().unwrap()
    }

    /// Saves a screenshot as PNG.
    pub(crate) fn picture(&mut self, file: &Path) {
        let answer = self.connection.call("Page.captureScreenshot", json!({ "format": "png" }));
        let bytes = data_encoding::BASE64.decode(answer["data"].as_str().unwrap().as_bytes()).unwrap();
        std::fs::write(file, bytes).unwrap();
    }

    /// Console output, exceptions and network requests of the page since the last call.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        self.evaluate("0");
        let events = std::mem::take(&mut self.connection.events);
        events.iter().filter_map(|(name, told)| complaint(name, told)).collect()
    }
}

/// Fails the test if the page complained.
impl Drop for Page {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let complaints = self.complaints();
            assert!(complaints.is_empty(), "the page complained: {complaints:#?}");
        }
    }
}

fn complaint(name: &str, told: &Value) -> Option<String> {
    match name {
        "Runtime.consoleAPICalled" => Some(format!("console.{}: {}", told["type"], told["args"])),
        "Runtime.exceptionThrown" => Some(format!("exception: {}", told["exceptionDetails"])),
        "Log.entryAdded" => Some(format!("log: {}", told["entry"])),
        "Page.javascriptDialogOpening" => Some(format!("dialog: {}", told["message"])),
        "Network.requestWillBeSent" => {
            let url = told["request"]["url"].as_str().unwrap();
            let is_local = ["file:", "data:", "blob:"].iter().any(|scheme| url.starts_with(scheme));
            (!is_local).then(|| format!("request: {url}"))
        }
        _ => None,
    }
}

/// The browser's key code.
fn number_of(key: &str) -> u32 {
    match key {
        "Backspace" => 8,
        "Tab" => 9,
        "Enter" => 13,
        "Escape" => 27,
        "PageUp" => 33,
        "PageDown" => 34,
        "End" => 35,
        "Home" => 36,
        "ArrowLeft" => 37,
        "ArrowUp" => 38,
        "ArrowRight" => 39,
        "ArrowDown" => 40,
        "Delete" => 46,
        "/" => 191,
        _ => key.chars().next().map_or(0, |letter| letter.to_ascii_uppercase().into()),
    }
}

/// The text that a key types, if any.
fn text_of(key: &str) -> Option<&str> {
    match key {
        "Enter" => Some("\r"),
        _ => (key.chars().count() == 1).then_some(key),
    }
}
