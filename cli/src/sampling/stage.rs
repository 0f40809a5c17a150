//! The process that becomes the program: this command starts itself, and that process executes the program as soon as it is looked at.
//!
//! It finds two pipes of its parent by their names in `/proc`, so that it inherits none. Through the first one it gets what to execute;
//! the pipe's end means that all of it was said. Into the second one it writes that it waits, and why it could not execute the program.
//! Both are closed when the program is executed, which tells the parent that it was.

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command};

/// The first argument of the command that waits. Nobody types it.
const MARK: &str = "execute-sampled";

/// This command's own file, also if another one has its name by now.
const OWN: &str = "/proc/self/exe";

/// Written by the process once it waits.
const READY: u8 = b'r';

/// What is to be executed.
pub(crate) struct Program<'a> {
    pub(crate) file: &'a Path,
    /// The program's name for itself.
    pub(crate) name: &'a OsStr,
    pub(crate) args: &'a [OsString],
    /// Variables added to the environment.
    pub(crate) env: &'a [(&'static str, OsString)],
}

/// The command that waits, with the pipes still to be named.
pub(super) fn command() -> Command {
    let mut command = Command::new(OWN);
    command.arg(MARK);
    command
}

/// A process that waits until it is told what to execute.
pub(crate) struct Waiting {
    child: Child,
    told: PipeWriter,
    answer: PipeReader,
}

/// What this command and the process need to speak with each other.
pub(super) struct Pipes {
    to_read: PipeReader,
    told: PipeWriter,
    answer: PipeReader,
    to_write: PipeWriter,
}

impl Pipes {
    /// Makes them. What fails here keeps nobody from starting the program without samples.
    pub(super) fn new() -> Result<Pipes> {
        let named = std::fs::read_link("/proc/self").context("cannot read /proc/self")?;
        if named.as_os_str() != std::process::id().to_string().as_str() {
            bail!("/proc is that of other processes");
        }
        let (to_read, told) = std::io::pipe().context("cannot make a pipe")?;
        let (answer, to_write) = std::io::pipe().context("cannot make a pipe")?;
        Ok(Pipes {
            to_read,
            told,
            answer,
            to_write,
        })
    }
}

/// Starts the process. It has the streams of the command.
pub(super) fn spawn(command: &mut Command, pipes: Pipes) -> Result<Waiting> {
    let Pipes {
        to_read,
        told,
        answer,
        to_write,
    } = pipes;
    command.arg(std::process::id().to_string());
    command.arg(to_read.as_raw_fd().to_string());
    command.arg(to_write.as_raw_fd().to_string());
    let mut child = command.spawn().context("cannot start this command again")?;
    if let Err(error) = wait_for(&mut child, &answer) {
        let _ = child.kill(); // it may have ended
        let _ = child.wait();
        return Err(error);
    }
    // From here on the process's own ends are the only ones.
    drop((to_read, to_write));
    Ok(Waiting {
        child,
        told,
        answer,
    })
}

/// Waits until the process says that it waits, or has ended: a signal may have ended it, as it would have ended the program.
fn wait_for(child: &mut Child, mut answer: &PipeReader) -> Result<()> {
    const PAUSE: rustix::event::Timespec = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    loop {
        let ready = poll(&mut [PollFd::new(&answer, PollFlags::IN)], Some(&PAUSE));
        if matches!(ready, Ok(1..)) {
            let mut byte = [0];
            answer.read_exact(&mut byte)?;
            return Ok(());
        }
        if let Some(status) = child.try_wait()? {
            match status.signal() {
                Some(_) => return Ok(()),
                None => bail!("this command can't be started again ({status})"),
            }
        }
    }
}

impl Waiting {
    /// Its process: that of the program.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it execute the program.
    ///
    /// # Errors
    /// Those of executing it.
    pub(crate) fn go(self, program: &Program<'_>) -> std::io::Result<Child> {
        let Waiting {
            mut child,
            mut told,
            mut answer,
        } = self;
        let written = told.write_all(&encode(program));
        drop(told);
        let mut error = vec![];
        answer.read_to_end(&mut error)?;
        let errno = match (error.first_chunk(), written) {
            (Some(bytes), _) => i32::from_le_bytes(*bytes),
            (None, _) => return Ok(child), // it was executed, or a signal has ended it
        };
        child.wait()?;
        Err(std::io::Error::from_raw_os_error(errno))
    }
}

/// Texts with a zero behind each, which none of them has in it, and how many there are.
fn encode(program: &Program<'_>) -> Vec<u8> {
    let [args, env] = [program.args.len(), program.env.len()];
    let mut out = format!("{args} {env}\0").into_bytes();
    let variables = (program.env.iter()).flat_map(|(name, value)| [OsStr::new(name), value]);
    let texts = [program.file.as_os_str(), program.name];
    let args = program.args.iter().map(OsString::as_os_str);
    for text in texts.into_iter().chain(args).chain(variables) {
        out.extend_from_slice(text.as_bytes());
        out.push(0);
    }
    out
}

/// The command to execute; `None`: not all of it was said.
fn decode(bytes: &[u8]) -> Option<Command> {
    let text = bytes.strip_suffix(&[0])?;
    let mut texts = text.split(|&b| b == 0);
    let counts = std::str::from_utf8(texts.next()?).ok()?;
    let (args, env) = counts.split_once(' ')?;
    let (args, env): (usize, usize) = (args.parse().ok()?, env.parse().ok()?);
    let texts: Vec<OsString> = texts.map(|t| OsString::from_vec(t.to_vec())).collect();
    let (first, rest) = texts.split_at_checked(2)?;
    let (args, variables) = rest.split_at_checked(args)?;
    if variables.len() != env.checked_mul(2)? {
        return None;
    }
    let mut command = Command::new(&first[0]);
    command.arg0(&first[1]).args(args);
    for pair in variables.chunks_exact(2) {
        command.env(&pair[0], &pair[1]);
    }
    Some(command)
}

/// Whether this process was started to wait.
pub(crate) fn is_stage() -> bool {
    std::env::args_os().nth(1).is_some_and(|arg| arg == MARK)
}

/// What it does. It returns only if the program was not executed.
pub(crate) fn execute() -> u8 {
    const FAILED: u8 = 1;
    let args: Vec<OsString> = std::env::args_os().skip(2).collect();
    let [parent, to_read, to_write] = &args[..] else {
        return FAILED;
    };
    let path = |pipe: &OsString| {
        let parts = ["/proc".as_ref(), parent.as_os_str(), "fd".as_ref(), pipe];
        parts.iter().collect::<std::path::PathBuf>()
    };
    let opened = (
        File::open(path(to_read)),
        File::options().write(true).open(path(to_write)),
    );
    let (Ok(mut told), Ok(mut answer)) = opened else {
        return FAILED;
    };
    let mut bytes = vec![];
    if answer.write_all(&[READY]).is_err() || told.read_to_end(&mut bytes).is_err() {
        return FAILED;
    }
    drop(told);
    // Without all of it the command has ended: nobody wants the program any more.
    if let Some(mut command) = decode(&bytes) {
        let errno = command.exec().raw_os_error().unwrap_or(0);
        let _ = answer.write_all(&errno.to_le_bytes()); // nobody is told then
    }
    FAILED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_executed_as_a_whole_or_not_at_all() {
        let args = [
            "-c".into(),
            String::new().into(),
            OsString::from_vec(vec![0xff]),
        ];
        let env = [("A", "b=c".into()), ("EMPTY", OsString::new())];
        let program = Program {
            file: Path::new("/bin/sh"),
            name: OsStr::new("-sh"),
            args: &args,
            env: &env,
        };
        let bytes = encode(&program);
        let command = decode(&bytes).unwrap();
        assert_eq!(command.get_program(), "/bin/sh");
        assert!(command.get_args().eq(args.iter().map(OsString::as_os_str)));
        let found: Vec<_> = command.get_envs().collect();
        let expected =
            [("A", "b=c"), ("EMPTY", "")].map(|(k, v)| (OsStr::new(k), Some(OsStr::new(v))));
        assert_eq!(found, expected);
        for len in 0..bytes.len() {
            assert!(decode(&bytes[..len]).is_none(), "{len}");
        }
    }
}
