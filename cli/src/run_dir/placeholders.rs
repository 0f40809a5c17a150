//! Placeholders in the name of an output folder: `run-%q{RANK}-%p`.

use crate::rank::rank_of_this;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// An output folder as it was given, with its placeholders filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// The variables of the environment that are in its name.
    pub(crate) variables: Vec<String>,
    /// Whether the number of this process is.
    pub(crate) has_pid: bool,
    /// Whether the number of the MPI rank is.
    pub(crate) has_rank: bool,
}

/// For clap.
#[derive(Debug, Clone)]
pub(crate) struct OutputParser;

impl clap::builder::TypedValueParser for OutputParser {
    type Value = Output;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Output, clap::Error> {
        let fail = |message: String| {
            let name = arg.map_or_else(|| "--output".to_owned(), ToString::to_string);
            let message = format!(
                "invalid value '{}' for '{name}': {message}\n",
                value.display()
            );
            clap::Error::raw(clap::error::ErrorKind::ValueValidation, message).with_cmd(command)
        };
        if value.is_empty() {
            return Err(fail("a folder's name is needed".to_owned()));
        }
        let host = || rustix::system::uname().nodename().to_bytes().to_vec();
        let variable = |name: &str| std::env::var_os(name);
        fill_in(value.as_bytes(), variable, &host, rank_of_this()).map_err(fail)
    }
}

/// Fills in `%q{VARIABLE}`, `%r` (the rank), `%p` (this process), `%h` (the host) and `%%`.
fn fill_in(
    pattern: &[u8],
    variable: impl Fn(&str) -> Option<OsString>,
    host: &dyn Fn() -> Vec<u8>,
    rank: Option<u32>,
) -> Result<Output, String> {
    const KNOWN: &str =
        "there are %q{VARIABLE}, %r (MPI rank), %p (process), %h (host) and %% (a percent sign)";
    let (mut name, mut variables) = (Vec::new(), Vec::new());
    let (mut has_pid, mut has_rank) = (false, false);
    let mut rest = pattern;
    while let Some(at) = rest.iter().position(|&b| b == b'%') {
        name.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let (what, behind) = rest
            .split_first()
            .ok_or_else(|| format!("% at the end: {KNOWN}"))?;
        rest = behind;
        match what {
            b'%' => name.push(b'%'),
            b'p' => {
                name.extend(std::process::id().to_string().bytes());
                has_pid = true;
            }
            b'h' => name.extend(host()),
            b'r' => {
                let rank =
                    rank.ok_or("%r: no launcher of MPI programs has started this command")?;
                name.extend(rank.to_string().bytes());
                has_rank = true;
            }
            b'q' => {
                let text = rest.strip_prefix(b"{").and_then(|rest| {
                    let end = rest.iter().position(|&b| b == b'}')?;
                    Some((std::str::from_utf8(&rest[..end]).ok()?, &rest[end + 1..]))
                });
                let (text, behind) = text
                    .filter(|(text, _)| !text.is_empty() && !text.contains(['=', '\0']))
                    .ok_or("%q needs the name of a variable in braces: %q{RANK}")?;
                let value = variable(text).filter(|v| !v.is_empty()).ok_or_else(|| {
                    format!("%q{{{text}}}: there is no variable {text} in the environment")
                })?;
                name.extend_from_slice(value.as_bytes());
                variables.push(text.to_owned());
                rest = behind;
            }
            _ => {
                let shown = String::from_utf8_lossy(std::slice::from_ref(what)).into_owned();
                return Err(format!("%{shown} is no placeholder: {KNOWN}"));
            }
        }
    }
    name.extend_from_slice(rest);
    Ok(Output {
        folder: PathBuf::from(OsString::from_vec(name)),
        variables,
        has_pid,
        has_rank,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pattern: &str) -> Result<String, String> {
        let variable = |name: &str| match name {
            "RANK" => Some("3".into()),
            "EMPTY" => Some("".into()),
            _ => None,
        };
        let filled = fill_in(
            pattern.as_bytes(),
            variable,
            &|| b"node7".to_vec(),
            (!pattern.contains("alone")).then_some(3),
        )?;
        Ok(filled.folder.display().to_string())
    }

    #[test]
    fn placeholders_are_filled_in() {
        let pid = std::process::id();
        assert_eq!(filled("out"), Ok("out".to_owned()));
        assert_eq!(filled("run-%q{RANK}-%p"), Ok(format!("run-3-{pid}")));
        assert_eq!(filled("%h/%q{RANK}%q{RANK}.d"), Ok("node7/33.d".to_owned()));
        assert_eq!(filled("job/%r"), Ok("job/3".to_owned()));
        assert_eq!(filled("100%%"), Ok("100%".to_owned()));
    }

    #[test]
    fn what_is_none_is_refused() {
        for (wrong, why) in [
            ("%x", "%x is no placeholder"),
            ("50%", "% at the end"),
            ("%q", "%q needs"),
            ("%qRANK", "%q needs"),
            ("%q{RANK", "%q needs"),
            ("%q{}", "%q needs"),
            ("%q{NONE}", "there is no variable NONE"),
            ("%q{EMPTY}", "there is no variable EMPTY"),
            ("alone/%r", "no launcher"),
        ] {
            let error = filled(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
