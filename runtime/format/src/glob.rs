//! Patterns for names, as users write them.

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
