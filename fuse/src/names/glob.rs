//! Patterns for names, as users write them.

use super::{origin, readable, without_arguments};

/// Whether a glob is a function's name: its linkage name, or that of the source, with or without template arguments. A part of
/// a function (`solve._omp_fn.0`) has the function's name too.
#[must_use]
pub fn is_called(glob: &str, function: &str) -> bool {
    let readable = readable(function);
    let brief = without_arguments(&readable);
    let names = [function, &*readable, &*brief];
    names
        .iter()
        .any(|name| matches_glob(glob, name) || matches_glob(glob, origin(name)))
}

/// Whether a path ends with another one, which may be a glob: whole components only.
#[must_use]
pub fn is_path_end(glob: &str, path: &str) -> bool {
    let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
    matches_glob(glob, path) || ends.into_iter().any(|end| matches_glob(glob, end))
}

/// Shell-like matching of a whole name: `*` is any text, `?` any character.
#[must_use]
pub fn matches_glob(glob: &str, text: &str) -> bool {
    let (glob, text) = (glob.as_bytes(), text.as_bytes());
    let (mut g, mut t) = (0, 0);
    let mut star = None; // the last star, and the text position up to which it has eaten
    while t < text.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g, t));
                g += 1;
            }
            Some(&c) if c == b'?' || c == text[t] => {
                g += 1;
                t += 1;
            }
            _ => {
                let Some((at, eaten)) = star else {
                    return false;
                };
                star = Some((at, eaten + 1));
                (g, t) = (at + 1, eaten + 1);
            }
        }
    }
    glob[g..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (glob, path) in [
            ("lu.c", "/src/lu.c"),
            ("src/*.c", "/src/lu.c"),
            ("/src/lu.c", "/src/lu.c"),
        ] {
            assert!(is_path_end(glob, path), "{glob} {path}");
        }
        for (glob, path) in [
            ("u.c", "/src/lu.c"),
            ("src/lu", "/src/lu.c"),
            ("/lu.c", "/src/lu.c"),
        ] {
            assert!(!is_path_end(glob, path), "{glob} {path}");
        }
    }

    #[test]
    fn globs() {
        for (glob, text) in [
            ("a", "a"),
            ("*", ""),
            ("a*c", "abbc"),
            ("a*b*", "aab"),
            ("?b", "ab"),
            ("a**", "a"),
        ] {
            assert!(matches_glob(glob, text), "{glob} {text}");
        }
        for (glob, text) in [
            ("a", "b"),
            ("", "a"),
            ("a*c", "abcd"),
            ("?", ""),
            ("a", "ab"),
        ] {
            assert!(!matches_glob(glob, text), "{glob} {text}");
        }
    }
}
