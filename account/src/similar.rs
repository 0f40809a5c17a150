//! What a name may have meant that nothing has.

/// Names are as similar as a misspelt one from this similarity of Jaro and Winkler on.
const SIMILAR: f64 = 0.85;

/// The name that is most similar to a misspelt one; `None`: no name is.
pub fn similar<N: AsRef<str>>(name: &str, known: impl IntoIterator<Item = N>) -> Option<String> {
    let rated = known.into_iter().map(|known| {
        let similarity = strsim::jaro_winkler(name, known.as_ref());
        (similarity, known)
    });
    let nearest = rated.max_by(|x, y| x.0.total_cmp(&y.0));
    let (_, known) = nearest.filter(|&(similarity, _)| similarity >= SIMILAR)?;
    Some(known.as_ref().to_owned())
}

/// The question behind a name in a message, or nothing: ` (did you mean time?)`.
pub fn did_you_mean<N: AsRef<str>>(name: &str, known: impl IntoIterator<Item = N>) -> String {
    let similar = similar(name, known);
    similar.map_or(String::new(), |known| format!(" (did you mean {known}?)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_told_from_another_name() {
        let known = ["time", "wall", "load-balance"];
        assert_eq!(did_you_mean("tmie", known), " (did you mean time?)");
        assert_eq!(did_you_mean("cycles", known), "");
    }
}
