//! Names of functions as people know them.

use cpp_demangle::{DemangleOptions, Symbol};
use std::borrow::Cow;

/// The name of a symbol as the source has it: C++ without parameters, return type and template arguments
/// (`<>` stands for them), gfortran's module procedures as `module::procedure`. What compilers append for parts of a
/// function (`._omp_fn.0`, `.cold`) stays, and so does every other name.
///
/// ```
/// # use ompfuse_report::names::readable;
/// assert_eq!(readable("_ZN4mesh5Solve4stepILi3EEEvRKNS_4GridE._omp_fn.0"), "mesh::Solve::step<>._omp_fn.0");
/// assert_eq!(readable("__lattice_MOD_sweep._omp_fn.1"), "lattice::sweep._omp_fn.1");
/// assert_eq!(readable("main"), "main");
/// ```
#[must_use]
pub fn readable(symbol: &str) -> Cow<'_, str> {
    let (name, part) = symbol.split_at(symbol.find('.').unwrap_or(symbol.len()));
    match cpp(name).or_else(|| fortran(name)) {
        Some(name) => Cow::Owned(name + part),
        None => Cow::Borrowed(symbol),
    }
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let text = Symbol::new(name)
        .ok()?
        .demangle_with_options(&options)
        .ok()?;
    Some(without_arguments(&text))
}

/// The name with `<>` for template arguments; unchanged if its angles aren't pairs (`operator<`).
fn without_arguments(name: &str) -> String {
    let (mut out, mut depth) = (String::with_capacity(name.len()), 0_usize);
    if name.contains("operator") {
        return name.to_owned();
    }
    for c in name.chars() {
        match c {
            '<' => {
                if depth == 0 {
                    out.push_str("<>");
                }
                depth += 1;
            }
            '>' => match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => return name.to_owned(),
            },
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// gfortran's `__module_MOD_procedure`.
fn fortran(name: &str) -> Option<String> {
    let (module, procedure) = name.strip_prefix("__")?.split_once("_MOD_")?;
    (!module.is_empty() && !procedure.is_empty()).then(|| format!("{module}::{procedure}"))
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn names_are_those_of_the_source() {
        for (symbol, name) in [
            ("_Z4workv", "work"),
            ("_Z4worki.omp_outlined", "work.omp_outlined"),
            ("_ZNKSt6vectorIiSaIiEE4sizeEv", "std::vector<>::size"),
            ("_ZltRK1AS1_", "operator<"),
            ("_ZN1AC2Ev", "A::A"),
            ("_Znonsense", "_Znonsense"),
            ("_Z", "_Z"),
            (".omp_outlined.", ".omp_outlined."),
            ("__m_MOD_p", "m::p"),
            ("__MOD_", "__MOD_"),
            ("", ""),
        ] {
            assert_eq!(readable(symbol), name, "{symbol}");
        }
    }
}
