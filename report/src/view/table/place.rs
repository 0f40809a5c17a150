//! Places where there is little room.

use super::{Kept, cut, front};
use ompfuse_fuse::names::narrowed;

/// A place in at most `width` characters: its file and line stay, names are shortened inside of their template arguments.
///
/// ```
/// # use ompfuse_report::view::table::place;
/// let text = "solve.cc:61 scale<std::vector<double, std::allocator<double> > >";
/// assert_eq!(place(text, 40), "solve.cc:61 scale<std::vector<…> >");
/// assert_eq!(place(text, 21), "solve.cc:61 scale<…>");
/// assert_eq!(place(text, 14), "solve.cc:61 s…");
/// ```
pub fn place(text: &str, width: usize) -> String {
    match text.chars().count() <= width {
        true => text.to_owned(),
        false => cut_place(text, width),
    }
}

/// A place that is too long: template arguments become `<…>`, the innermost first. Then what stands behind `file:line` is cut, then
/// what stands before it. A name and an address lose their beginning, other words lose their end.
fn cut_place(text: &str, width: usize) -> String {
    let short = narrowed(text, width);
    if short.chars().count() <= width {
        return short.into_owned();
    }
    match file_and_line(&short) {
        Some(line) if line.end - line.start >= width => cut(&short[line], width, Kept::End),
        Some(line) => {
            let rest = &short[line.end..];
            let long = (line.end - line.start) + rest.chars().count();
            match long > width || line.start == 0 {
                true => cut(&short[line.start..], width, Kept::Front),
                false => cut(&short, width, Kept::End),
            }
        }
        None if is_words(&short) => front(&short, width),
        None => cut(&short, width, Kept::End),
    }
}

/// Whether a place is told by words: `outside constructs`, but not `mesh::refine 0x2a03`.
fn is_words(text: &str) -> bool {
    let last = text.rsplit_once(' ').map(|(_, last)| last);
    last.is_some_and(|last| last.bytes().all(|b| b.is_ascii_alphabetic()))
}

/// Where `file:line` is in a text.
fn file_and_line(text: &str) -> Option<std::ops::Range<usize>> {
    let mut at = 0;
    text.split(' ').find_map(|word| {
        let here = at..at + word.len();
        at = here.end + 1;
        let (file, line) = word.rsplit_once(':')?;
        let is_line = !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit());
        (is_line && !file.is_empty()).then_some(here)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_keep_their_line() {
        let in_library = "libsolve.so: src.cc:7 run<a<b> >";
        for (text, width, wanted) in [
            (in_library, 40, in_library),
            (in_library, 30, "libsolve.so: src.cc:7 run<…>"),
            (in_library, 20, "…so: src.cc:7 run<…>"),
            (in_library, 12, "src.cc:7 ru…"),
            (in_library, 8, "src.cc:7"),
            (in_library, 5, "…cc:7"),
            ("mesh::refine::smooth 0x2a03", 20, "…fine::smooth 0x2a03"),
            ("f<g<h>, 2>::run 0x12", 19, "f<…>::run 0x12"),
            ("operator< 0x12", 10, "…tor< 0x12"),
            ("libsolve.so: mesh::smooth", 14, "… mesh::smooth"),
            ("starting, left out", 12, "starting, l…"),
        ] {
            assert_eq!(place(text, width), wanted, "{text}, {width}");
        }
    }
}
