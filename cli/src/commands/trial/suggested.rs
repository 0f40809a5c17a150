//! What is tried where no option says so.

use super::files::Seen;
use crate::select::set::Set;
use anyhow::Result;
use ompfuse_account::Report;
use ompfuse_account::trying::{MOST, Proposal, Variable};
use std::path::Path;

/// Settings of each variant, and variables of each.
type Suggested = (Vec<Vec<Set>>, Vec<Vec<Variable>>);

/// What the recorded run makes worth trying: settings, and variables.
pub(super) fn suggested(
    proposals: &[Proposal],
    program: &Path,
    with_libraries: bool,
) -> Result<Suggested> {
    let own = program.canonicalize().ok();
    let is_own = |path: &str| Path::new(path).canonicalize().ok() == own;
    let (mut sets, mut variables) = (vec![], vec![]);
    for proposal in proposals {
        match proposal {
            Proposal::Variables(all) => variables.push(all.clone()),
            Proposal::Setting(setting) => {
                if sets.len() < MOST && (with_libraries || !setting.is_of_library(&is_own)) {
                    let set = setting.text(&is_own).parse::<Set>();
                    sets.push(vec![set.map_err(anyhow::Error::msg)?]);
                }
            }
        }
    }
    Ok((sets, variables))
}

/// The variables of libraries with threads of their own, beside those that are recorded.
pub(super) fn of_libraries(seen: &Seen, report: &Report) -> Vec<Vec<Variable>> {
    if seen.threads <= u64::from(report.threads.max(1)) {
        return vec![];
    }
    let libraries = ompfuse_patterns::threaded(seen.libraries.iter().map(String::as_str));
    let variables = libraries.map(|library| (&*library.variable, "1".to_owned()));
    let is_new = |(name, value): &Variable| std::env::var(name).ok().as_ref() != Some(value);
    let variables = variables.filter(is_new);
    variables.map(|variable| vec![variable]).collect()
}
