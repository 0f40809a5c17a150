//! Every link of a page, and every mention of one in comments and messages, leads to a file and heading that exist.

use super::pages::{self, Page};
use ompfuse_tests::repository;
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

#[test]
fn links_of_pages_lead_somewhere() {
    let pages = pages::all();
    let anchors = anchors(&pages);
    let mut dead = vec![];
    for page in &pages {
        let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
        for link in &page.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = match file {
                "" => PathBuf::from(&page.path),
                file => folder.join(file),
            };
            if !exists(&anchors, &file, anchor) {
                dead.push(format!("{}: {link}", page.path));
            }
        }
    }
    assert!(dead.is_empty(), "links lead nowhere:\n{}", dead.join("\n"));
}

#[test]
fn mentions_in_code_lead_somewhere() {
    let pages = pages::all();
    let anchors = anchors(&pages);
    let keys = &anchors["docs/references.md"];
    let (mut dead, mut found) = (vec![], 0);
    for file in pages::files_below(repository(), &["rs", "toml", "sh", "c", "h", "py"]) {
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue; // some fixtures are no text
        };
        let name = pages::relative(&file);
        let folder = Path::new(&name).parent().unwrap_or(Path::new(""));
        for (number, line) in (1..).zip(text.lines()) {
            for mention in mentions(line) {
                found += 1;
                let (path, anchor) = mention.split_once('#').unwrap_or((mention, ""));
                let near = folder.join(path);
                if ![Path::new(path), &near]
                    .iter()
                    .any(|p| exists(&anchors, p, anchor))
                {
                    dead.push(format!("{name}:{number}: {mention}"));
                }
            }
            for key in citations(line) {
                found += 1;
                if !keys.contains(&key.to_lowercase()) {
                    dead.push(format!(
                        "{name}:{number}: [{key}] is not in docs/references.md"
                    ));
                }
            }
        }
    }
    assert!(found > 20, "only {found} mentions were found");
    assert!(
        dead.is_empty(),
        "mentions lead nowhere:\n{}",
        dead.join("\n")
    );
}

#[test]
fn the_book_has_every_page() {
    let pages = pages::all();
    let summary = pages.iter().find(|p| p.path == "docs/SUMMARY.md");
    let listed: Vec<String> = summary.map_or(vec![], |p| p.links.clone());
    let unique: HashSet<&String> = listed.iter().collect();
    assert_eq!(unique.len(), listed.len(), "a page is listed twice");
    let in_book = |p: &&Page| p.path.starts_with("docs/") && p.path != "docs/SUMMARY.md";
    let missing: Vec<&str> = (pages.iter().filter(in_book))
        .filter_map(|p| p.path.strip_prefix("docs/"))
        .filter(|path| !listed.iter().any(|l| l == path))
        .collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md lacks {missing:?}");
}

/// The anchors of each page.
fn anchors(pages: &[Page]) -> HashMap<String, HashSet<String>> {
    let of = |p: &Page| (p.path.clone(), p.anchors.iter().cloned().collect());
    pages.iter().map(of).collect()
}

fn exists(anchors: &HashMap<String, HashSet<String>>, file: &Path, anchor: &str) -> bool {
    let file = plain(file);
    match anchors.get(&*file.to_string_lossy()) {
        Some(known) => anchor.is_empty() || known.contains(anchor),
        None => anchor.is_empty() && repository().join(file).exists(),
    }
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = out.pop(),
            part => out.push(part),
        }
    }
    out
}

/// The pages that a line names: in `docs`, or with a name in capitals.
fn mentions(line: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-./#".contains(c);
    let words = line.split(|c: char| !is_part(c));
    let words = words.map(|w| w.trim_end_matches('.').trim_start_matches("../"));
    let is_page = |w: &&str| {
        let Some((path, _)) = w.split_once(".md") else {
            return w.starts_with("docs/") && w.ends_with(".json");
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        path.starts_with("docs/")
            || (name.len() > 3 && name.chars().all(|c| c.is_ascii_uppercase()))
    };
    words.filter(is_page).collect()
}

/// The keys of papers that a comment names: `[XU] section 4`.
fn citations(line: &str) -> Vec<&str> {
    let Some((_, comment)) = line.split_once("//") else {
        return vec![];
    };
    let mut found = vec![];
    let mut rest = comment;
    while let Some((_, after)) = rest.split_once('[') {
        let Some((key, behind)) = after.split_once(']') else {
            break;
        };
        let is_name = key.starts_with(|c: char| c.is_ascii_uppercase())
            && key.chars().all(char::is_alphanumeric)
            && (key == "XU" || key.contains(|c: char| c.is_ascii_lowercase()));
        if is_name && !behind.starts_with(['(', ':', '[']) {
            found.push(key);
        }
        rest = behind;
    }
    found
}
