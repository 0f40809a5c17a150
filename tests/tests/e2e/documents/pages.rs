//! The Markdown pages of the repository, parsed.

use ompfuse_tests::repository;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Pages that a command prints: other tests compare them with it.
pub(super) const GENERATED: [&str; 1] = ["docs/reference/commands.md"];

/// A Markdown file.
pub(super) struct Page {
    /// Path from the repository's folder.
    pub(super) path: String,
    /// Paragraphs, items and cells of tables, each as plain text. A piece of code is one word.
    pub(super) texts: Vec<Text>,
    /// What links lead to, as written.
    pub(super) links: Vec<String>,
    /// The headings' anchors, as GitHub and mdBook make them.
    pub(super) anchors: Vec<String>,
}

/// A piece of prose.
pub(super) struct Text {
    pub(super) words: String,
    /// A cell of a table, or a heading.
    pub(super) is_short: bool,
}

/// All pages of the repository.
pub(super) fn all() -> Vec<Page> {
    let mut files = vec![];
    for file in ["README.md", "CONTRIBUTING.md"] {
        files.push(repository().join(file));
    }
    for folder in ["docs", "fixtures"] {
        files.extend(files_below(&repository().join(folder), &["md"]));
    }
    files.sort();
    files.iter().map(|file| Page::read(file)).collect()
}

/// The files in a folder and its folders with one of these endings, but for what is built.
pub(super) fn files_below(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = vec![];
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries {
        let path = entry.expect("a folder's entry can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !path.is_symlink() {
            if name != "target" && name != "node_modules" && !name.starts_with('.') {
                found.extend(files_below(&path, endings));
            }
        } else if endings.iter().any(|e| name.ends_with(&format!(".{e}"))) {
            found.push(path);
        }
    }
    found
}

/// Path from the repository's folder.
pub(super) fn relative(path: &Path) -> String {
    let path = path.strip_prefix(repository()).unwrap_or(path);
    path.to_string_lossy().into_owned()
}

impl Page {
    fn read(file: &Path) -> Page {
        let text = std::fs::read_to_string(file)
            .unwrap_or_else(|e| panic!("cannot read {}: {e}", file.display()));
        let mut page = Page {
            path: relative(file),
            texts: vec![],
            links: vec![],
            anchors: vec![],
        };
        let mut used: HashMap<String, usize> = HashMap::new();
        let (mut words, mut heading) = (String::new(), None::<HeadingLevel>);
        let mut in_code = false;
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::CodeBlock(_)) => in_code = true,
                Event::End(TagEnd::CodeBlock) => in_code = false,
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { level, .. }) => heading = Some(level),
                Event::Text(text) if !in_code => words += &text,
                Event::Code(code) => match heading {
                    Some(_) => words += &code,
                    None => words += "code",
                },
                Event::SoftBreak | Event::HardBreak => words.push(' '),
                Event::End(TagEnd::Heading(_)) => {
                    heading = None;
                    let anchor = anchor(&words);
                    let before = used.entry(anchor.clone()).or_default();
                    page.anchors.push(match *before {
                        0 => anchor,
                        n => format!("{anchor}-{n}"),
                    });
                    *before += 1;
                    page.end(&mut words, true);
                }
                Event::End(TagEnd::TableCell) => page.end(&mut words, true),
                Event::End(TagEnd::Paragraph | TagEnd::Item) => page.end(&mut words, false),
                // A list in an item: what stands before it is a text of its own.
                Event::Start(Tag::List(_)) => page.end(&mut words, false),
                _ => {}
            }
        }
        page
    }

    fn end(&mut self, words: &mut String, is_short: bool) {
        let words = std::mem::take(words);
        if !words.trim().is_empty() {
            self.texts.push(Text { words, is_short });
        }
    }
}

/// A heading's anchor: lower case, hyphens for blanks, no other signs.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
