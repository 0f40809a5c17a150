//! Whose source a line is in: the user's, or a library's, whose headers the compiler brings along or the system has.

use std::borrow::Cow;

/// Folders of installed headers.
const INSTALLED: [&str; 6] = [
    "/usr/include/",
    "/usr/local/include/",
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
    "/usr/libexec/",
];

/// Parts of the paths of a compiler's own headers, wherever it is installed.
const COMPILERS: [&str; 6] = [
    "/include/c++/",
    "/lib/gcc/",
    "/lib64/gcc/",
    "/lib/clang/",
    "/lib64/clang/",
    "/lib/llvm-",
];

/// Folder of other software, whose headers are in folders called `include`.
const OTHERS: &str = "/opt/";

/// Whether a source file, by its path in debug information, is a library's header.
pub(super) fn is_librarys(path: &str) -> bool {
    let path = plain(path);
    INSTALLED.iter().any(|folder| path.starts_with(folder))
        || COMPILERS.iter().any(|part| path.contains(part))
        || path.starts_with(OTHERS) && path.contains("/include/")
}

/// The path without `.` and `..`.
fn plain(path: &str) -> Cow<'_, str> {
    if !path.contains("/.") {
        return Cow::Borrowed(path);
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|&p| !p.is_empty() && p != "..") => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    Cow::Owned(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_libraries_and_sources_of_users() {
        for librarys in [
            "/usr/include/c++/12/bits/stl_vector.h",
            "/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/vector",
            "/home/me/conda/x86_64-conda-linux-gnu/include/c++/13.3.0/vector",
            "/home/me/llvm/lib/clang/19/include/immintrin.h",
            "/opt/intel/oneapi/mkl/2024.0/include/mkl.h",
            "/usr/local/include/Eigen/src/Core/Product.h",
        ] {
            assert!(is_librarys(librarys), "{librarys}");
        }
        for users in [
            "/home/me/solver/include/mesh.h",
            "/usr/src/hello-2.10/src/hello.c",
            "/opt/solver/src/main.cc",
            "/work/.hidden/a.c",
            "a.c",
            "../lib/a.c",
        ] {
            assert!(!is_librarys(users), "{users}");
        }
    }
}
