//! Commands.

/// A command as one types it.
pub fn shell_words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(quoted).collect();
    words.join(" ")
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    match word.is_empty() || !word.chars().all(is_plain) {
        true => format!("'{}'", word.replace('\'', r"'\''")),
        false => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_more() {
        let words = ["./fib", "25", "", "a b", "it's", "$HOME"].map(quoted);
        assert_eq!(
            words,
            ["./fib", "25", "''", "'a b'", r"'it'\''s'", "'$HOME'"]
        );
    }
}
