//! What git knows: the commit that is checked out, and files of other branches.

use anyhow::{Context, Result, bail};
use ompfuse_compare::Commit;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// Variables with the branch that a pipeline builds: it has checked out a commit, and no branch.
const BRANCHES: [&str; 2] = ["GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"];

/// The commit that is checked out in the current folder; `None`: it is in no repository, or there is no git.
pub(crate) fn commit() -> Option<Commit> {
    let hash = line(&["rev-parse", "--verify", "--quiet", "HEAD"])?;
    Some(Commit {
        branch: branch(),
        date: line(&["show", "--no-patch", "--format=%cI", "HEAD"]),
        is_changed: is_changed(),
        hash,
    })
}

/// The branch that is checked out, or that a pipeline builds.
pub(crate) fn branch() -> Option<String> {
    let branch = BRANCHES.iter().find_map(|name| std::env::var(name).ok());
    let branch = branch.or_else(|| line(&["rev-parse", "--abbrev-ref", "HEAD"]));
    branch.filter(|b| !b.is_empty() && b != "HEAD")
}

/// Whether files that git knows have changes. Baselines themselves are written anew, and are no source.
fn is_changed() -> bool {
    let listed = output(&["status", "--porcelain", "--untracked-files=no"]).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed).into_owned();
    listed
        .lines()
        .any(|l| !l.trim_end_matches('"').ends_with(".json.gz"))
}

/// Paths of the files in a folder of a revision, and nothing below it.
pub(crate) fn files(revision: &str, folder: &str) -> Result<Vec<String>> {
    // With its slash the folder's contents are listed, not the folder.
    let folder = match folder.trim_end_matches('/') {
        "" | "." => String::new(),
        folder => format!("{folder}/"),
    };
    let mut args = vec!["ls-tree", "-z", "--name-only", "--full-tree", revision];
    args.extend((!folder.is_empty()).then_some(&*folder));
    let listed = output(&args)?;
    let names = String::from_utf8_lossy(&listed);
    Ok(names
        .split('\0')
        .filter(|n| !n.is_empty())
        .map(str::to_owned)
        .collect())
}

/// A file of a revision.
pub(crate) fn file(revision: &str, path: &str) -> Result<Vec<u8>> {
    output(&["cat-file", "blob", &format!("{revision}:{path}")])
}

fn line(args: &[&str]) -> Option<String> {
    let text = String::from_utf8(output(args).ok()?).ok()?;
    let line = text.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

fn output<S: AsRef<OsStr>>(args: &[S]) -> Result<Vec<u8>> {
    let mut git = Command::new("git");
    git.args(args).stdin(Stdio::null());
    let output = git.output().context("cannot start git")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().next().unwrap_or("it says nothing");
        bail!("git: {}", first.trim_start_matches("fatal: "));
    }
    Ok(output.stdout)
}
