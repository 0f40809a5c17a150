//! A terminal of a given size that a command runs in: tmux, whose picture of the screen is the oracle.

use crate::{process, skip};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(20);

/// A terminal; it ends with this value.
pub struct Tmux {
    folder: TempDir,
}

impl Tmux {
    /// Starts a command of the shell in a terminal with a server of its own; `None`: there is no tmux, which is said. The command's end
    /// doesn't end the terminal.
    #[track_caller]
    pub fn start(columns: u32, rows: u32, env: &[(&str, &str)], shell: &str) -> Option<Tmux> {
        let known = Command::new("tmux").arg("-V").output();
        if !known.is_ok_and(|output| output.status.success()) {
            skip("tmux is not installed");
            return None;
        }
        let folder = tempfile::tempdir().expect("there is room for a socket");
        let terminal = Tmux { folder };
        let mut start = terminal.command();
        start.envs(env.iter().copied());
        start
            .env_remove("NO_COLOR")
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8");
        start.args([
            "new-session",
            "-d",
            "-x",
            &columns.to_string(),
            "-y",
            &rows.to_string(),
        ]);
        start.arg(format!("{shell}; echo \"ended: $?\"; sleep 600"));
        process::run(&mut start).ok("tmux");
        Some(terminal)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        process::clean(&mut command, 2);
        command
            .env_remove("TMUX")
            .env_remove("COLUMNS")
            .env_remove("LINES");
        command
            .args(["-u", "-f", "/dev/null", "-S"])
            .arg(self.socket());
        command
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        process::run(self.command().args(["capture-pane", "-p"])).text()
    }

    /// The screen, as soon as it is as wanted.
    ///
    /// # Panics
    /// If it takes too long.
    #[track_caller]
    pub fn wait_for(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(Instant::now() < end, "{what} never came:\n{screen}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits for a text.
    #[track_caller]
    pub fn wait(&self, text: &str) -> String {
        self.wait_for(text, |screen| screen.contains(text))
    }

    /// Presses keys: characters, as they are.
    pub fn type_in(&self, text: &str) {
        process::run(self.command().args(["send-keys", "-l", text])).ok("keys");
    }

    /// Presses a key by its name: `Enter`, `Escape`, `Down`.
    pub fn press(&self, key: &str) {
        process::run(self.command().args(["send-keys", key])).ok("a key");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").output();
    }
}
