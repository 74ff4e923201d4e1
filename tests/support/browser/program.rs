//! The browser process. It starts with an empty profile, and ends with the test.

use super::DEADLINE;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Chromium's program names: on Debian, on Ubuntu, and Google's own builds.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Arguments that isolate the browser: no window, no network, no background downloads or prompts.
const ARGUMENTS: [&str; 17] = [
    "--headless",
    "--remote-debugging-port=0",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-features=Translate,MediaRouter,OptimizationHints",
    "--disable-gpu",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-default-browser-check",
    "--no-first-run",
    "--password-store=basic",
];

/// A running browser with its own profile. It is killed when this value is dropped.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    profile: TempDir,
}

impl Program {
    pub(super) fn start() -> Self {
        let name = NAMES.into_iter().find(|name| is_installed(name));
        let name = name.unwrap_or_else(|| panic!("Chromium is needed: apt-get install chromium (tests/run.sh does)"));
        let profile = tempfile::tempdir().unwrap();
        // End the browser together with the thread that started it, even if that thread is killed.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", name]).args(ARGUMENTS);
        // Chromium's sandbox doesn't work as root or in containers. It isn't needed: the pages are written by the
        // tests.
        command.arg("--no-sandbox").arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
        command.env("HOME", profile.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(fs::File::create(profile.path().join("stderr")).unwrap()).spawn();
        let child = child.unwrap_or_else(|error| panic!("setpriv is needed: {error} (tests/run.sh installs it)"));
        Self { child, profile }
    }

    /// Port and path of the DevTools socket. Chromium writes them to a file once it listens.
    pub(super) fn socket(&mut self) -> (u16, String) {
        let file = self.profile.path().join("DevToolsActivePort");
        let started = Instant::now();
        loop {
            let text = fs::read_to_string(&file).unwrap_or_default();
            if let Some((port, path)) = text.split_once('\n') {
                return (port.parse().unwrap(), path.trim_end().to_owned());
            }
            let ended = self.child.try_wait().unwrap();
            let is_late = started.elapsed() > DEADLINE;
            assert!(ended.is_none() && !is_late, "Chromium did not start ({ended:?}): {}", self.complaints());
            sleep(Duration::from_millis(20));
        }
    }

    fn complaints(&self) -> String {
        fs::read_to_string(self.profile.path().join("stderr")).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| Path::new(&dir).join(name).is_file())
}
