//! What is changed from the screen: by the same code as `ompfuse ctl`.

use super::{Row, Watching};
use crate::running::{self, Access, Change, Changes, event_set, held};
use anyhow::{Context, Result, ensure};
use std::time::Duration;

/// How long somebody else's change is waited for; the screen stands still meanwhile.
const PATIENCE: Duration = Duration::from_millis(500);

impl Watching {
    /// Switches a region of its process off or on.
    pub(super) fn switch(&self, row: &Row, on: bool) -> Result<()> {
        let selector = selector(row).context("it has no place that can be named")?;
        let what = selector.parse().map_err(anyhow::Error::msg)?;
        let changes = Changes {
            list: vec![Change::Switch { what, on }],
            ..Changes::default()
        };
        let mut processes = running::find(&self.target, Access::Change)?;
        processes.retain(|p| p.pid == row.pid);
        ensure!(!processes.is_empty(), "process {} has ended", row.pid);
        changes.apply(&processes, PATIENCE)
    }

    /// Counts these events from now on, in all processes.
    pub(super) fn count(&self, list: &str) -> Result<()> {
        let changes = Changes {
            sets: vec![event_set(list)?],
            ..Changes::default()
        };
        changes.apply(&running::find(&self.target, Access::Change)?, PATIENCE)
    }

    /// Pauses recording in all processes, or lets it go on.
    pub(super) fn hold(&self, held: bool) -> Result<()> {
        held::hold(&self.target, held).map(|_| ())
    }

    /// Whether recording is paused in all processes.
    pub(super) fn is_held(&self) -> bool {
        let mut states = self.processes.iter().filter_map(|p| p.state.as_ref());
        !self.processes.is_empty() && states.all(|s| s.held)
    }

    /// The events that are counted now.
    pub(super) fn counted(&self) -> String {
        let mut sets: Vec<String> = Vec::new();
        for state in self.processes.iter().filter_map(|p| p.state.as_ref()) {
            let numbers = match state.rotate {
                0 => std::slice::from_ref(&state.set),
                _ => &state.rotating[..],
            };
            let names = numbers.iter().filter_map(|&n| state.sets.get(n as usize));
            for names in names.filter(|n| !n.is_empty()) {
                if !sets.contains(names) {
                    sets.push(names.clone());
                }
            }
        }
        match sets.is_empty() {
            true => "times only".to_owned(),
            false => sets.join(" or "),
        }
    }
}

/// What names a row's region, as for `ompfuse ctl --disable`.
fn selector(row: &Row) -> Option<String> {
    let Some(address) = &row.address else {
        return Some(format!("user:{}", row.function.as_ref()?));
    };
    let name = row.module.as_deref()?.rsplit('/').next()?;
    Some(format!("lib:{name}:{address}"))
}
