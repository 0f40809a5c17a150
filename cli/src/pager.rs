//! Long texts at a terminal go through a pager.

use crate::{interrupt, launch, output};
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

/// Prints text that ends with a line break: through the pager if standard output is a terminal with fewer lines. `PAGER=cat` is none.
pub(crate) fn print(text: &str) -> Result<()> {
    let pager = is_longer(text)
        .then(|| pager(std::env::var_os("PAGER")))
        .flatten();
    match pager.is_some_and(|pager| show(pager, &output::harmless(text))) {
        true => Ok(()),
        false => output::print(text),
    }
}

/// Whether a text is longer than the screen of standard output; false where that is no terminal.
fn is_longer(text: &str) -> bool {
    let out = std::io::stdout();
    let is_dumb = std::env::var_os("TERM").is_none_or(|t| t == "dumb");
    if !out.is_terminal() || is_dumb {
        return false;
    }
    // One line is the shell's.
    rustix::termios::tcgetwinsize(&out)
        .is_ok_and(|size| size.ws_row > 0 && text.lines().count() >= usize::from(size.ws_row))
}

/// The user's pager, or less. `None`: none is wanted, or there is none.
fn pager(wanted: Option<OsString>) -> Option<Command> {
    let mut command = match wanted {
        Some(wanted) if wanted.is_empty() || wanted == "cat" => return None,
        Some(wanted) => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(wanted);
            command
        }
        None => Command::new(launch::find(OsStr::new("less")).ok()?),
    };
    // It ends where the text fits, shows colours, and leaves the text on the screen.
    for (name, value) in [("LESS", "FRX"), ("LESSCHARSET", "utf-8")] {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    Some(command)
}

/// Shows a text in a pager; false: it could not be started, and nothing was shown.
fn show(mut pager: Command, text: &str) -> bool {
    // Ctrl-C is the pager's.
    let _hold = interrupt::hold();
    let Ok(mut child) = pager.stdin(Stdio::piped()).spawn() else {
        return false;
    };
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(text.as_bytes()); // the user may end it early
    }
    // The shell's status where there is no such program.
    !matches!(
        child.wait().map(|status| status.code()),
        Ok(Some(126 | 127))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pagers_are_named_by_the_user() {
        assert!(pager(Some("".into())).is_none() && pager(Some("cat".into())).is_none());
        let shown = |name: &str| show(pager(Some(name.into())).unwrap(), "text\n");
        assert!(shown("cat >/dev/null") && shown("true"));
        assert!(!shown("no-such-pager 2>/dev/null"));
    }
}
