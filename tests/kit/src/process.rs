//! Processes with a time limit, in an environment that the tests determine.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Once, mpsc};
use std::time::{Duration, Instant};

/// Longest time that any process of the suite may take. Generous: the machine is shared, and a hang is what it is for.
pub const LIMIT: Duration = Duration::from_secs(120);

/// What a process left behind.
#[derive(Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit status; 128 + number for a signal.
    pub status: i32,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Wall-clock time.
    pub duration: Duration,
}

impl Output {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// What two runs of a program are compared by.
    pub fn outcome(&self) -> (i32, String, String) {
        (self.status, self.text(), self.errors())
    }

    /// Whether libomp ended the program for a mistake of its own.
    pub fn is_libomp_bug(&self) -> bool {
        self.status != 0 && self.errors().contains(LIBOMP_BUG)
    }

    /// Itself, if the status is 0.
    ///
    /// # Panics
    /// Otherwise, with everything that the process said.
    #[track_caller]
    pub fn ok(self, what: &str) -> Output {
        assert!(self.status == 0, "{what}: {self:?}");
        self
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "status {} after {:.2} s",
            self.status,
            self.duration.as_secs_f64()
        )?;
        writeln!(f, "--- stdout\n{}", self.text())?;
        write!(f, "--- stderr\n{}", self.errors())
    }
}

/// Takes everything out of the environment that could change how an OpenMP program or ompfuse behaves.
///
/// Waiting is passive: on few processors spinning makes the times of a run vary a hundredfold.
pub fn clean(command: &mut Command, threads: usize) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["OMP_", "KMP_", "GOMP_", "OMPFUSE_", "LD_"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(&name);
        }
    }
    command
        .env("OMP_WAIT_POLICY", "passive")
        .env("OMP_NUM_THREADS", threads.to_string())
        .env("OMP_DYNAMIC", "false")
        .env("LC_ALL", "C")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
}

/// What libomp 19 says when its dynamic loops trip over themselves, as they do once in thousands of runs of any program.
const LIBOMP_BUG: &str = "Assertion failure at kmp_dispatch.cpp(1618)";
/// How often a command is run until that does not happen.
pub const ATTEMPTS: usize = 3;

/// Runs a command to its end and keeps what it says. A program that fell over [`LIBOMP_BUG`] is run again, which is said;
/// not so ompfuse, which leaves runs behind (what records programs sees to that).
///
/// # Panics
/// If it can't be started, or if it takes longer than [`LIMIT`].
#[track_caller]
pub fn run(command: &mut Command) -> Output {
    let is_ompfuse = Path::new(command.get_program()).file_name() == Some("ompfuse".as_ref());
    let mut output = within(command, LIMIT);
    for _ in 1..ATTEMPTS {
        if is_ompfuse || !output.is_libomp_bug() {
            break;
        }
        eprintln!("again, since libomp failed: {command:?}");
        output = within(command, LIMIT);
    }
    output
}

/// The same for a command that may take longer, once.
///
/// # Panics
/// If it can't be started, or if it takes longer than that.
#[track_caller]
pub fn within(command: &mut Command, limit: Duration) -> Output {
    static BEFORE: Once = Once::new();
    BEFORE.call_once(forget_registrations);
    let started = Instant::now();
    // A process group of its own, so that nothing is left behind when the time is up.
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = loop {
        match command.spawn() {
            // A process that another test started just then still holds the program open for writing.
            Err(e) if e.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            started => break started.unwrap_or_else(|e| panic!("cannot start {command:?}: {e}")),
        }
    };
    let (send, receive) = mpsc::channel();
    let drain = |which: usize, mut pipe: Box<dyn Read + Send>| {
        let send = send.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            let _ = send.send((which, bytes));
        });
    };
    drain(0, Box::new(child.stdout.take().expect("stdout is piped")));
    drain(1, Box::new(child.stderr.take().expect("stderr is piped")));
    let mut said = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        let Ok((which, bytes)) = receive.recv_timeout(limit.saturating_sub(started.elapsed()))
        else {
            kill_group(child.id());
            let _ = child.wait();
            panic!(
                "{command:?} took more than {} s and was ended",
                limit.as_secs()
            );
        };
        said[which] = bytes;
    }
    let status = child
        .wait()
        .unwrap_or_else(|e| panic!("cannot wait for {command:?}: {e}"));
    let [stdout, stderr] = said;
    let status = status
        .code()
        .or_else(|| status.signal().map(|s| 128 + s))
        .unwrap_or(-1);
    // Its own end by a signal, or one that ompfuse or a shell handed on.
    if status > 128 {
        forget_registrations();
    }
    Output {
        status,
        stdout,
        stderr,
        duration: started.elapsed(),
    }
}

/// Removes the files in which libomp notes that it is loaded into processes, of those that are no more: one that was killed
/// leaves it behind, and if it was just being made, it is empty, which ends the next process of that number with SIGBUS.
fn forget_registrations() {
    for entry in std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|n| n.strip_prefix("__KMP_REGISTERED_LIB_"))
            .and_then(|n| n.split('_').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn kill_group(leader: u32) {
    let _ = Command::new("kill")
        .args(["-KILL", "--", &format!("-{leader}")])
        .status();
    forget_registrations();
}
