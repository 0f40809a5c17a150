//! What a region is called, and where it is.

use crate::model::Region;
use ompfuse_format::site::Source;
use ompfuse_fuse::names::readable;

/// The construct, with the one that it is combined with.
pub(super) fn kind(region: &Region) -> String {
    let construct = region.construct.unwrap_or("xu");
    // Other source code gives the same instructions.
    if region.detail.as_deref() == Some("or equivalent") {
        return format!("{construct} or equivalent");
    }
    match region.combined_with {
        Some(inner) => format!("{construct} {inner}"),
        None => construct.to_owned(),
    }
}

/// Source line, or function and address, behind the file where the profile has several.
pub(super) fn location(region: &Region) -> String {
    let place = place(
        region.source.as_ref(),
        region.function.as_deref(),
        &region.name,
    );
    match &region.file {
        Some(file) => format!("{file}: {place}"), // the front is cut where room is short
        None => place,
    }
}

pub(super) fn place(source: Option<&Source>, function: Option<&str>, name: &str) -> String {
    match (source, function) {
        (Some(source), _) => {
            let file = source.file.rsplit('/').next().unwrap_or(&source.file);
            format!("{file}:{}", source.line)
        }
        (None, Some(function)) => format!("{} {name}", readable(function)),
        (None, None) => name.to_owned(),
    }
}
