//! Which files of a crate use each other. Files that use each other in a circle are understood only together: how many there are in the
//! largest circle of each crate, and which folders use one above them, may only become less.
//!
//! A file uses another where a `use` or a path names something that is defined there. A module's ancestors are left out, and so are tests.

mod graph;
mod source;

use graph::{circle_in, largest_circle};
use source::Crate;
use std::collections::BTreeSet;
use std::path::Path;

/// What a crate has now. Lower a number, and take out an arrow, as soon as the test says that it can be: it never comes back.
struct Allowed {
    /// Folder of the crate.
    folder: &'static str,
    /// Files in the largest circle; 1: there is none.
    circle: usize,
    /// Upward arrows between the modules of the crate's root: without these there is an order in which each uses only those below it.
    upward: &'static [(&'static str, &'static str)],
}

const CRATES: &[Allowed] = &[
    Allowed {
        folder: "account",
        circle: 2,
        upward: &[],
    },
    Allowed {
        folder: "compare",
        circle: 2,
        upward: &[],
    },
    Allowed {
        folder: "report",
        circle: 2,
        upward: &[],
    },
    Allowed {
        folder: "cli",
        circle: 2,
        upward: &[("progress", "output")],
    },
    Allowed {
        folder: "runtime",
        circle: 5,
        upward: &[("syscall", "undisturbed"), ("thread", "process")],
    },
    Allowed {
        folder: "rewriter",
        circle: 5,
        upward: &[
            ("count", "place"),
            ("count", "scan"),
            ("patch_error", "verify"),
            ("place", "scan"),
            ("plan", "describe"),
            ("plan", "draft"),
        ],
    },
    Allowed {
        folder: "fuse",
        circle: 6,
        upward: &[("profile", "exchange"), ("summary", "span")],
    },
    Allowed {
        folder: "runtime/format",
        circle: 5,
        upward: &[("event", "run")],
    },
    Allowed {
        folder: "otf2",
        circle: 3,
        upward: &[("archive", "events")],
    },
    Allowed {
        folder: "study",
        circle: 1,
        upward: &[],
    },
    Allowed {
        folder: "export",
        circle: 1,
        upward: &[],
    },
    Allowed {
        folder: "patterns",
        circle: 1,
        upward: &[],
    },
    Allowed {
        folder: "runtime/audit",
        circle: 1,
        upward: &[],
    },
    Allowed {
        folder: "simpmu/plugin",
        circle: 1,
        upward: &[],
    },
];

#[test]
fn circles_only_become_smaller() {
    let mut wrong = vec![];
    for allowed in CRATES {
        let found = open(allowed.folder);
        let circle = largest_circle(&found.uses);
        let folder = allowed.folder;
        match circle.len() {
            now if now > allowed.circle => wrong.push(format!(
                "{folder}: {now} files use each other in a circle, {} are allowed:\n  {}",
                allowed.circle,
                circle.join("\n  ")
            )),
            now if now < allowed.circle => wrong.push(format!(
                "{folder}: {now} files are in the largest circle: lower {} in CRATES",
                allowed.circle
            )),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn upward_arrows_only_become_fewer() {
    let mut wrong = vec![];
    for Allowed { folder, upward, .. } in CRATES {
        let mut downward = open(folder).between_roots();
        let is_there: BTreeSet<_> = downward.clone();
        let arrow = |(from, to): &(&str, &str)| ((*from).to_owned(), (*to).to_owned());
        for allowed in upward.iter().map(arrow) {
            downward.remove(&allowed);
        }
        if let Some(circle) = circle_in(&downward) {
            wrong.push(format!(
                "{folder}: its modules have no order any more: {}",
                circle.join(" -> ")
            ));
            continue;
        }
        for allowed in upward.iter().map(arrow) {
            downward.insert(allowed.clone());
            if !is_there.contains(&allowed) || circle_in(&downward).is_none() {
                wrong.push(format!(
                    "{folder}: {} -> {} is not there or not upward: take it out of CRATES",
                    allowed.0, allowed.1
                ));
            }
            downward.remove(&allowed);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A crate of this project.
fn open(folder: &str) -> Crate {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let source = root.join(folder).join("src");
    let found = Crate::read(&|path| std::fs::read_to_string(source.join(path)).ok());
    assert!(found.uses.len() > 1, "{folder}: no files were found");
    found
}
