//! Opens pages in Chromium and in Firefox and shows how long each took until it had drawn, how long it takes to draw
//! another range of time, and how much memory its process had at most:
//!
//! ```text
//! cargo run --release --features tools --example pages -- [--runs N] FILE|URL …
//! ```
//!
//! A file `*.svg` is a flame graph of jitgraft's, an address with `speedscope` in it is speedscope's page from disk
//! (`…/index.html#localProfilePath=/FILE.js`), anything else is a page of `jitgraft view`. Each run has a browser of
//! its own; times are those that the page's own clock gives since it was requested.

#[path = "../support/browser/mod.rs"]
#[expect(dead_code, reason = "pages are opened and asked, not used")]
mod browser;

use browser::Page;
use browser::connection::Connection;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The number of ranges that are brushed.
const BRUSHES: usize = 9;

/// The measurements of a page.
struct Measure {
    /// Milliseconds from asking for the page to its first picture.
    first: f64,
    /// Milliseconds from another range of time to the picture of it, of each brush; empty if the page has none.
    brushes: Vec<f64>,
    /// The greatest memory of the page's process, in MB.
    memory: f64,
}

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mut runs = 3;
    if args.first().is_some_and(|first| first == "--runs") {
        runs = args.drain(..2).nth(1).and_then(|number| number.parse().ok()).expect("--runs N");
    }
    if args.is_empty() {
        eprintln!("usage: pages [--runs N] FILE|URL …");
        return ExitCode::from(2);
    }
    println!("browser\tpage\tMB\tfirst picture, ms\tbrush, ms (median, most)\tmemory, MB");
    for page in &args {
        let url = address(page);
        for (browser, measure) in [("Chromium", in_chromium as fn(&str) -> Measure), ("Firefox", in_firefox)] {
            let measures: Vec<Measure> = (0..runs).map(|_| measure(&url)).collect();
            println!("{browser}\t{page}\t{}\t{}", size(page), told(&measures));
        }
    }
    ExitCode::SUCCESS
}

fn address(page: &str) -> String {
    match Path::new(page).canonicalize() {
        Ok(path) => format!("file://{}", path.display()),
        Err(_) => page.to_owned(),
    }
}

/// The size of the file, or of the one that speedscope's page loads.
fn size(page: &str) -> String {
    let file = page.split_once("localProfilePath=").map_or(page, |(_, file)| file);
    fs::metadata(file).map_or_else(|_| "-".to_owned(), |file| format!("{:.2}", file.len() as f64 / 1e6))
}

fn told(measures: &[Measure]) -> String {
    let span = |of: fn(&Measure) -> f64| {
        let (least, most) =
            measures.iter().map(of).fold((f64::MAX, 0f64), |(least, most), x| (least.min(x), most.max(x)));
        format!("{least:.0}–{most:.0}")
    };
    let mut brushes: Vec<f64> = measures.iter().flat_map(|measure| measure.brushes.iter().copied()).collect();
    brushes.sort_by(f64::total_cmp);
    let brush = match brushes.last() {
        Some(most) => format!("{:.0}, {most:.0}", brushes[brushes.len() / 2]),
        None => "-".to_owned(),
    };
    format!("{}\t{brush}\t{}", span(|measure| measure.first), span(|measure| measure.memory))
}

/// A promise of the time at which the page has drawn.
fn first_picture(url: &str) -> String {
    let is_drawn = match url {
        _ if url.ends_with(".svg") => "document.querySelector('canvas')?.width > 300",
        _ if url.contains("speedscope") => {
            "document.title.endsWith(' - speedscope') && document.querySelector('canvas')"
        }
        _ => "window.jitgraft?.page?.painted > 0",
    };
    format!(
        "new Promise((drawn) => {{ const look = () => {is_drawn} ? requestAnimationFrame(() => drawn(performance.now())) \
         : requestAnimationFrame(look); look() }})"
    )
}

/// A promise of how long it took to draw each of several ranges; `null` for other pages than ours.
fn brushes(url: &str) -> Option<String> {
    let is_ours = !url.ends_with(".svg") && !url.contains("speedscope");
    is_ours.then(|| {
        format!(
            "(async () => {{ const {{ page }} = jitgraft, {{ time }} = page.profile, took = []; if (!time) return took; \
             const length = Number(time.last - time.start) / time.unit; \
             for (let at = 0; at < {BRUSHES}; at++) {{ const began = performance.now(), before = page.painted; \
             page.store.set({{ ranges: [[Math.floor(length * at / 20), Math.floor(length * (at + 8) / 20)]] }}); \
             await new Promise((drawn) => {{ const look = () => page.painted > before ? drawn() : requestAnimationFrame(look); \
             requestAnimationFrame(look) }}); took.push(performance.now() - began); \
             await new Promise((rested) => setTimeout(rested, 300)) }} return took }})()"
        )
    })
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().map_or_else(Vec::new, |list| list.iter().filter_map(Value::as_f64).collect())
}

fn in_chromium(url: &str) -> Measure {
    let mut page = Page::blank();
    page.connection.call("Page.navigate", json!({ "url": url }));
    let first = page.evaluate(&first_picture(url)).as_f64().expect("a time");
    let brushes = brushes(url).map_or_else(Vec::new, |brushes| numbers(&page.evaluate(&brushes)));
    let processes = page.connection.call_browser("SystemInfo.getProcessInfo", json!({}));
    let processes = processes["processInfo"].as_array().expect("processes").clone();
    let renderers = processes.iter().filter(|process| process["type"] == "renderer");
    let memory = renderers.map(|process| peak(process["id"].as_u64().expect("a pid"))).fold(0.0, f64::max);
    // Console output of other pages is not measured: a page that is left writes no more.
    page.go_to("about:blank");
    page.complaints();
    Measure { first, brushes, memory }
}

/// The greatest memory of a process so far, in MB.
fn peak(pid: u64) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// A Firefox without a window, with a profile of its own.
struct Firefox {
    child: Child,
    profile: TempDir,
}

impl Firefox {
    fn start() -> Self {
        let profile = tempfile::tempdir().expect("a directory");
        let program =
            ["firefox-esr", "firefox"].into_iter().find(|name| Command::new(name).arg("--version").output().is_ok());
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", program.expect("Firefox is needed: apt-get install firefox-esr")]);
        command.args([
            "--headless",
            "--no-remote",
            "--remote-debugging-port=0",
            "--width=1400",
            "--height=900",
            "--profile",
        ]);
        command.arg(profile.path()).env("HOME", profile.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("Firefox");
        Self { child, profile }
    }

    /// Speaks WebDriver BiDi, whose messages look like those of DevTools.
    fn connect(&self) -> Connection {
        let file = self.profile.path().join("WebDriverBiDiServer.json");
        let started = Instant::now();
        let port = loop {
            let told: Value = serde_json::from_slice(&fs::read(&file).unwrap_or_default()).unwrap_or_default();
            if let Some(port) = told["ws_port"].as_u64() {
                break port;
            }
            assert!(started.elapsed() < browser::DEADLINE, "Firefox did not start");
            sleep(Duration::from_millis(20));
        };
        Connection::open(port as u16, "/session")
    }

    /// The greatest memory of its processes that hold pages.
    fn memory(&self) -> f64 {
        let parent = self.child.id().to_string();
        let pids = fs::read_dir("/proc")
            .expect("/proc")
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
        let is_page = |pid: &u64| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            // Those that Firefox forks have one text with blanks instead of arguments.
            let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
            arguments.contains(&format!(" -parentPid {parent} ")) && arguments.trim_end().ends_with(" tab")
        };
        pids.filter(is_page).map(peak).fold(0.0, f64::max)
    }
}

impl Drop for Firefox {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn in_firefox(url: &str) -> Measure {
    let firefox = Firefox::start();
    let mut connection = firefox.connect();
    connection.call("session.new", json!({ "capabilities": {} }));
    let tree = connection.call("browsingContext.getTree", json!({}));
    let context = tree["contexts"][0]["context"].clone();
    connection.call(
        "browsingContext.setViewport",
        json!({ "context": context, "viewport": { "width": 1400, "height": 900 } }),
    );
    connection.call("browsingContext.navigate", json!({ "context": context, "url": url, "wait": "none" }));
    let mut evaluate = |expression: &str| {
        let question = json!({ "expression": expression, "target": { "context": context }, "awaitPromise": true });
        let answer = connection.call("script.evaluate", question);
        assert_eq!(answer["type"], "success", "{answer}");
        answer["result"].clone()
    };
    let started = Instant::now();
    while evaluate("location.href")["value"].as_str() == Some("about:blank") {
        assert!(started.elapsed() < browser::DEADLINE, "{url} was not opened");
        sleep(Duration::from_millis(5));
    }
    let first = evaluate(&first_picture(url))["value"].as_f64().expect("a time");
    let list = brushes(url).map(|brushes| evaluate(&brushes)["value"].clone()).unwrap_or_default();
    let brushes =
        list.as_array().map_or_else(Vec::new, |list| list.iter().filter_map(|one| one["value"].as_f64()).collect());
    Measure { first, brushes, memory: firefox.memory() }
}
