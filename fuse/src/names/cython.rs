//! Names that Cython gives to C functions of Python code.

/// `cluster.lloyd.iterate` for `__pyx_pf_7cluster_5lloyd_6iterate`; `None`: it is no such name.
///
/// Each part of the module's path has its length in front. The function's own name has a number instead, which tells functions of one
/// module apart, or none; with a copy for each of several types there is another one in front of all.
pub(super) fn cython(symbol: &str) -> Option<String> {
    let mut rest = symbol;
    while let Some(copy) = rest.strip_prefix("__pyx_fuse_") {
        let behind = copy.trim_start_matches(|c: char| c.is_ascii_digit());
        rest = (behind.len() < copy.len()).then_some(behind)?;
    }
    // A definition's body, its wrapper, and functions of C.
    let kinds = ["__pyx_pf_", "__pyx_pw_", "__pyx_f_"];
    let mut rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let mut parts = vec![];
    while let Some((part, behind)) = part(rest) {
        // The number of a function may by chance be as long as its first word: then no other number follows.
        if !parts.is_empty() && symbol.contains("__pyx_p") && !starts_with_digit(behind) {
            break;
        }
        parts.push(part);
        rest = behind;
    }
    let name = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    if parts.is_empty() || name.is_empty() {
        return None;
    }
    parts.push(name);
    Some(parts.join("."))
}

/// A part of a path with its length in front, and what follows the underscore behind it.
fn part(text: &str) -> Option<(&str, &str)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let length: usize = text.get(..digits)?.parse().ok()?;
    let (part, behind) = text.get(digits..)?.split_at_checked(length)?;
    (!part.is_empty()).then_some((part, behind.strip_prefix('_')?))
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::cython;

    #[test]
    fn functions_have_their_python_names() {
        for (symbol, name) in [
            (
                "__pyx_fuse_1__pyx_pw_7sklearn_7cluster_14_k_means_lloyd_7lloyd_iter_chunked_dense",
                "sklearn.cluster._k_means_lloyd.lloyd_iter_chunked_dense",
            ),
            (
                "__pyx_pf_5numpy_6random_6mtrand_11RandomState_106shuffle",
                "numpy.random.mtrand.RandomState.shuffle",
            ),
            ("__pyx_pf_3mod_first", "mod.first"),
            ("__pyx_pw_7cluster_5lloyd_iter", "cluster.lloyd_iter"),
            (
                "__pyx_f_7sklearn_5utils_12_cython_blas__dot",
                "sklearn.utils._cython_blas._dot",
            ),
        ] {
            assert_eq!(cython(symbol).as_deref(), Some(name));
        }
        for other in [
            "__pyx_pf_",
            "__pyx_pymod_exec_x",
            "__pyx_f_9abc_d",
            "main",
            "__pyx_fuse_",
        ] {
            assert_eq!(cython(other), None, "{other}");
        }
    }
}
