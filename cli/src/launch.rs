//! Runs the program that is recorded.

mod input;
mod relay;
mod steady;

pub(crate) use input::{Feed, Input};

use crate::pace::pace_s;
use crate::sampling::{self, Sampler};
use crate::{interrupt, processors};
use anyhow::{Context, Result};
use ompfuse_format::run::Exit;
use relay::Relay;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Instant, SystemTime};

/// What to run, and how.
pub(crate) struct Launch<'a> {
    /// The file to execute.
    pub(crate) file: &'a Path,
    /// The program's name for itself.
    pub(crate) name: &'a OsStr,
    /// Its arguments.
    pub(crate) args: &'a [OsString],
    /// Variables added to the environment.
    pub(crate) env: Vec<(&'static str, OsString)>,
    /// Its working folder, if that isn't this command's.
    pub(crate) folder: Option<&'a Path>,
    /// It is to find everything at the same addresses each time, as far as the kernel allows it.
    pub(crate) is_steady: bool,
    /// Where its standard output goes.
    pub(crate) stdout: &'a Stdout,
    /// Its standard input, if that isn't this command's.
    pub(crate) stdin: Option<&'a mut Feed>,
    /// Called now and then while the program runs.
    pub(crate) meanwhile: Option<&'a dyn Fn(Moment)>,
    /// What looks at where its threads are.
    pub(crate) sampler: Option<&'a mut Sampler>,
}

/// Where a program's standard output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stdout {
    /// Where this command's goes.
    Own,
    /// To standard error, because this command's own result goes to standard output.
    Error,
    /// Into this file.
    File(PathBuf),
}

impl Stdout {
    /// For a command whose own result goes to standard output, if it does.
    pub(crate) fn beside(own_result: bool) -> Stdout {
        match own_result {
            true => Stdout::Error,
            false => Stdout::Own,
        }
    }
}

/// A moment while a program runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// The program's process.
    pub(crate) process: u32,
    /// One more near the begin, when a lot happens: for what has to be seen, not for what is due at intervals.
    pub(crate) is_early: bool,
}

/// How soon the first moment is, in nanoseconds; the next ones take twice as long each.
const FIRST_NS: i64 = 1_000_000;
/// How often there is one later.
const MEANWHILE_NS: i64 = 100_000_000;

/// A run that is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// How the program ended.
    pub(crate) exit: Exit,
    /// Begin, seconds since 1970.
    pub(crate) started: f64,
    /// Wall-clock time in seconds.
    pub(crate) duration_s: f64,
    /// Its addresses were not random.
    pub(crate) is_steady: bool,
    /// How long a computation took that is always the same, before it and behind it.
    pub(crate) pace_s: [f64; 2],
    /// What else processors were used for meanwhile.
    pub(crate) used: processors::Used,
    /// The signal that asked this command to end meanwhile.
    pub(crate) interrupted: Option<i32>,
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

/// Runs a program to its end. Standard error is this command's.
pub(crate) fn run(mut launch: Launch<'_>) -> Result<Ended> {
    if launch.is_steady {
        launch.env.push(steady::padding(&launch.env));
    }
    let sampler = (launch.sampler).and_then(|s| s.is_ready().then_some(s));
    let mut command = match &sampler {
        None => Command::new(launch.file),
        Some(_) => sampling::command(),
    };
    if sampler.is_none() {
        command
            .arg0(launch.name)
            .args(launch.args)
            .envs(launch.env.iter().map(|(k, v)| (k, v)));
    }
    if let Some(folder) = launch.folder {
        command.current_dir(folder).env("PWD", folder);
    }
    match launch.stdout {
        Stdout::Own => {}
        Stdout::Error => drop(command.stdout(Stdio::from(std::io::stderr()))),
        Stdout::File(path) => {
            let file = File::create(path);
            let file = file.with_context(|| format!("cannot write {}", path.display()))?;
            command.stdout(Stdio::from(file));
        }
    }
    if let Some(stdin) = launch.stdin.and_then(Feed::stdin) {
        command.stdin(stdin);
    }
    let hold = interrupt::hold();
    let mut relay = Relay::new();
    let mut is_steady = false;
    let waiting = match sampler {
        None => None,
        Some(sampler) => {
            let (is_set, waiting) =
                steady::started(launch.is_steady, || sampler.stage(&mut command));
            is_steady = is_set;
            let cannot = || {
                let file = launch.file.display();
                format!("cannot start {file} to be sampled; leave that out with --sampling off")
            };
            Some(waiting.with_context(cannot)?)
        }
    };
    let pace_before_s = pace_s();
    let started = now();
    let used = processors::Used::now();
    let clock = Instant::now();
    let spawned = match waiting {
        None => {
            let (is_set, spawned) = steady::started(launch.is_steady, || command.spawn());
            is_steady |= is_set;
            spawned
        }
        Some(waiting) => waiting.go(&sampling::Program {
            file: launch.file,
            name: launch.name,
            args: launch.args,
            env: &launch.env,
        }),
    };
    drop(command); // who keeps the reader's end of a pipe is not told that nobody reads it
    let mut child = spawned.map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => {
                " (where programs may not be executed, set XDG_CACHE_HOME to another folder)"
            }
            ErrorKind::ArgumentListTooLong => {
                " (some hundred bytes of variables are added to its environment)"
            }
            _ => "",
        };
        let context = format!("cannot start {}{remedy}", launch.file.display());
        anyhow::Error::new(error).context(context)
    })?;
    let status = wait(&mut child, &hold, &mut relay, launch.meanwhile)
        .with_context(|| format!("lost track of process {}", child.id()))?;
    let duration_s = clock.elapsed().as_secs_f64();
    let used = processors::Used::now().since(used);
    Ok(Ended {
        exit: exit_of(status),
        started,
        is_steady,
        duration_s,
        used,
        pace_s: [pace_before_s, pace_s()],
        interrupted: hold.take(), // the caller stops; what is recorded is kept
    })
}

/// Waits for the end of a child, handing on the signals that only this process got.
fn wait(
    child: &mut Child,
    hold: &interrupt::Hold,
    relay: &mut Relay,
    meanwhile: Option<&dyn Fn(Moment)>,
) -> std::io::Result<ExitStatus> {
    let pid = Pid::from_child(child);
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return child.wait(); // kernels before 5.3: signals are only noted
    };
    let mut told = false;
    let (mut pause, mut passed) = (FIRST_NS, 0);
    loop {
        // A signal ends the poll at once, or, if it came just before it, is seen a second later.
        let second = Timespec {
            tv_sec: i64::from(meanwhile.is_none()),
            tv_nsec: meanwhile.map_or(0, |_| pause),
        };
        let ended = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&second));
        if let Some(meanwhile) = meanwhile {
            passed += pause;
            let is_early = passed < MEANWHILE_NS && matches!(ended, Ok(0));
            if !is_early {
                passed = 0;
            }
            let process = child.id();
            meanwhile(Moment { process, is_early });
            pause = (2 * pause).min(MEANWHILE_NS);
        }
        relay.hand_on(pid);
        match ended {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            _ => return child.wait(),
        }
        if let Some(signal) = hold
            .pending()
            .filter(|&s| !told && interrupt::is_handed_on(s))
        {
            told = true;
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = kill_process(pid, signal); // it may have ended just now
            }
        }
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    match status.code() {
        Some(code) => Exit::Code(code),
        None => Exit::Signal(status.signal().unwrap_or(0)),
    }
}

/// The exit status that hands on how a program ended: 128 + n for signals, as shells have it.
pub(crate) fn status_of(exit: Exit) -> u8 {
    match exit {
        Exit::Code(code) => code as u8,
        Exit::Signal(signal) => (128 + signal) as u8,
        Exit::Unknown => 1,
    }
}

/// In words, for messages.
pub(crate) fn describe(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit status {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::Unknown => "its end was not seen".to_owned(),
    }
}

/// Finds a command as a shell would.
pub(crate) fn find(command: &OsStr) -> Result<PathBuf> {
    find_in(command, &std::env::var_os("PATH").unwrap_or_default())
}

fn find_in(command: &OsStr, path: &OsStr) -> Result<PathBuf> {
    let is_executable =
        |p: &Path| p.is_file() && rustix::fs::access(p, rustix::fs::Access::EXEC_OK).is_ok();
    let shown = Path::new(command).display();
    if command.as_encoded_bytes().contains(&b'/') {
        let file = PathBuf::from(command);
        anyhow::ensure!(file.exists(), "there is no program {shown}");
        anyhow::ensure!(!file.is_dir(), "{shown} is a folder, not a program");
        anyhow::ensure!(is_executable(&file), "{shown} is not an executable file");
        return Ok(file);
    }
    let found = std::env::split_paths(path)
        .map(|folder| folder.join(command))
        .find(|p| is_executable(p));
    found.with_context(|| {
        format!("there is no command {shown} in PATH; for a file in this folder give ./{shown}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Ended {
        let args = ["-c".into(), script.into()];
        let env = vec![("OMPFUSE_TEST", "x".into())];
        let launch = Launch {
            folder: None,
            is_steady: false,
            file: Path::new("/bin/sh"),
            name: OsStr::new("renamed"),
            args: &args,
            env,
            stdout: &Stdout::Error,
            stdin: None,
            meanwhile: None,
            sampler: None,
        };
        run(launch).unwrap()
    }

    #[test]
    fn failures_and_signals_are_handed_on() {
        assert_eq!(sh("exit 0").exit, Exit::Code(0));
        assert_eq!(status_of(sh("exit 7").exit), 7);
        let killed = sh("kill -9 $$");
        assert_eq!(killed.exit, Exit::Signal(9));
        assert_eq!(status_of(killed.exit), 137);
        assert_eq!(describe(killed.exit), "signal 9");
        assert!(killed.started > 1e9 && killed.duration_s < 60.0);
    }

    #[test]
    fn the_program_sees_its_own_name_and_the_added_variables() {
        assert_eq!(
            sh("test \"$0\" = renamed -a $OMPFUSE_TEST = x").exit,
            Exit::Code(0)
        );
    }

    #[test]
    fn commands_are_found_as_in_a_shell() {
        let path = OsStr::new("/nonexistent:/bin:/usr/bin");
        assert_eq!(
            find_in(OsStr::new("sh"), path).unwrap(),
            Path::new("/bin/sh")
        );
        assert_eq!(
            find_in(OsStr::new("/bin/sh"), OsStr::new("")).unwrap(),
            Path::new("/bin/sh")
        );
        let error = |c: &str| format!("{}", find_in(OsStr::new(c), path).unwrap_err());
        assert!(error("no-such-command").contains("give ./no-such-command"));
        assert_eq!(error("./no-such"), "there is no program ./no-such");
        assert_eq!(
            error("/etc/passwd"),
            "/etc/passwd is not an executable file"
        );
    }
}
