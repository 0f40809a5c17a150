//! Sentences of the documents are short.

use super::pages::{self, GENERATED, Page};

/// Most words of a sentence.
const MOST: usize = 35;
/// Most words of a page's sentences on average.
const MEAN: f64 = 20.0;
/// Most words of a page, without its blocks of code.
const PAGES: [(&str, usize); 2] = [("docs/design/overview.md", 900), ("CONTRIBUTING.md", 800)];

#[test]
fn sentences_are_short() {
    let mut long = vec![];
    for page in pages::all() {
        if GENERATED.contains(&&*page.path) {
            continue;
        }
        let sentences = sentences(&page);
        let lengths: Vec<usize> = sentences.iter().map(|s| words(s)).collect();
        for (sentence, length) in sentences.iter().zip(&lengths) {
            if *length > MOST {
                long.push(format!("{}: {length} words: {sentence}", page.path));
            }
        }
        let mean = lengths.iter().sum::<usize>() as f64 / lengths.len().max(1) as f64;
        if mean > MEAN {
            long.push(format!("{}: {mean:.1} words on average", page.path));
        }
    }
    assert!(long.is_empty(), "too long:\n{}", long.join("\n"));
}

#[test]
fn pages_are_short() {
    for page in pages::all() {
        let length: usize = page.texts.iter().map(|t| words(&t.words)).sum();
        if let Some((_, most)) = PAGES.iter().find(|(path, _)| *path == page.path) {
            assert!(
                length <= *most,
                "{} has {length} words, {most} at most",
                page.path
            );
        }
    }
}

/// The sentences of paragraphs, items and cells. Titles and cells of a word or two are none.
fn sentences(page: &Page) -> Vec<String> {
    let mut out = vec![];
    for text in &page.texts {
        let found = split(&text.words);
        let is_sentence = |s: &String| !text.is_short || words(s) > MOST;
        out.extend(found.into_iter().filter(is_sentence));
    }
    out
}

/// Divides a text behind `.`, `?`, `!` and `:`, where a blank and no small letter follows.
fn split(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let signs: Vec<char> = text.chars().collect();
    for (i, &c) in signs.iter().enumerate() {
        out.last_mut().expect("there is one").push(c);
        let ends = ".?!:".contains(c) || (c == ')' && i > 0 && ".?!".contains(signs[i - 1]));
        let next = signs.get(i + 1..).unwrap_or_default();
        let begins = next.first() == Some(&' ')
            && next
                .get(1)
                .is_some_and(|c| !c.is_lowercase() || text_is_code(&next[1..]));
        if ends && begins {
            out.push(String::new());
        }
    }
    out.retain(|s| words(s) > 0);
    out
}

/// A piece of code begins a sentence as well as a capital does.
fn text_is_code(next: &[char]) -> bool {
    next.starts_with(&['c', 'o', 'd', 'e'])
}

fn words(text: &str) -> usize {
    let words = text.split_whitespace();
    words.filter(|w| w.contains(char::is_alphanumeric)).count()
}
