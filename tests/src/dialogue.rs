//! A process that is talked to: a line goes in, a line comes out, and meanwhile it is looked at from outside.

use crate::process::{LIMIT, Output};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Instant;

/// A process with pipes for its input and output.
pub struct Dialogue {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Option<JoinHandle<Vec<u8>>>,
    said: String,
    started: Instant,
}

impl Dialogue {
    /// Starts a process.
    #[track_caller]
    pub fn start(command: &mut Command) -> Dialogue {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let (send, lines) = channel();
        let output = child.stdout.take().expect("stdout is piped");
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut errors = child.stderr.take().expect("stderr is piped");
        let errors = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = errors.read_to_end(&mut bytes);
            bytes
        });
        Dialogue {
            input: child.stdin.take(),
            child,
            lines,
            errors: Some(errors),
            said: String::new(),
            started: Instant::now(),
        }
    }

    /// Number of the process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its next line.
    #[track_caller]
    pub fn hear(&mut self) -> String {
        let line = self.lines.recv_timeout(LIMIT);
        let line = line.unwrap_or_else(|e| panic!("nothing heard ({e}) after:\n{}", self.said));
        self.said += &line;
        self.said.push('\n');
        line
    }

    /// Sends it a line.
    #[track_caller]
    pub fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is listening");
        writeln!(input, "{line}").expect("it is listening");
    }

    /// Sends it a line, and waits for its answer.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.hear()
    }

    /// Ends its input, and waits for its end.
    #[track_caller]
    pub fn end(mut self) -> Output {
        self.input = None;
        self.ended()
    }

    /// Waits for its end, which something else than its input brings about.
    #[track_caller]
    pub fn ended(mut self) -> Output {
        while let Ok(line) = self.lines.recv_timeout(LIMIT) {
            self.said += &line;
            self.said.push('\n');
        }
        self.input = None; // who has not ended by now does
        let status = self.child.wait().expect("it is ours");
        let errors = self.errors.take().and_then(|e| e.join().ok());
        Output {
            status: status
                .code()
                .or_else(|| status.signal().map(|s| 128 + s))
                .unwrap_or(-1),
            stdout: std::mem::take(&mut self.said).into_bytes(),
            stderr: errors.unwrap_or_default(),
            duration: self.started.elapsed(),
        }
    }
}

impl Drop for Dialogue {
    fn drop(&mut self) {
        self.input = None; // a recorded program ends by it too
        if self.errors.is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
