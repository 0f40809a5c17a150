//! How a comparison is shown.

mod annotations;
mod json;
mod junit;
mod markdown;
#[cfg(test)]
mod tests;
mod text;

pub use annotations::{github, gitlab};
pub use json::{Compared, Told, json};
pub use junit::junit;
pub use markdown::markdown;
pub use text::text;

use ompfuse_account::model::key::RegionKey;
use ompfuse_compare::{Diff, Finding, Pair};

/// Regions without a partner that are listed on each side.
const LONE: usize = 8;

/// How a comparison is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Regions to list.
    pub top: usize,
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to use escape codes for colour.
    pub colour: bool,
    /// Folder that paths in annotations are relative to.
    pub source_root: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            top: 12,
            width: 110,
            colour: false,
            source_root: None,
        }
    }
}

/// The regions that are listed, and how many more there are: those that are certain to have changed; where noise is unknown, those
/// that differ most.
fn listed<'d>(diff: &'d Diff, options: &Options) -> (Vec<&'d Pair>, usize) {
    let certain: Vec<&Pair> = diff.pairs.iter().filter(|p| p.differs()).collect();
    let unknown = |p: &&Pair| {
        !p.differs()
            && p.is_tested
            && p.headline()
                .is_some_and(|c| c.finding == Finding::NoiseUnknown)
    };
    let all: Vec<&Pair> = certain
        .into_iter()
        .chain(diff.pairs.iter().filter(unknown))
        .collect();
    let more = all.len().saturating_sub(options.top);
    (all.into_iter().take(options.top).collect(), more)
}

/// The path of a region's file as annotations need it: relative to the root of the source, where it is in it.
fn source_path(key: &RegionKey, options: &Options) -> Option<String> {
    let file = key.file.as_deref()?;
    let root = options
        .source_root
        .as_deref()
        .map(|r| r.trim_end_matches('/'));
    let inside = root.and_then(|root| file.strip_prefix(root)?.strip_prefix('/'));
    Some(inside.unwrap_or(file).to_owned())
}
