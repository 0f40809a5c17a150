//! Names of functions as people know them.

mod cython;
mod glob;
mod select;

pub use glob::{is_called, is_path_end, matches_glob};
pub use select::{Chooses, Place, Selector};

use cpp_demangle::{DemangleOptions, Symbol};
use cython::cython;
use std::borrow::Cow;

/// The name of a symbol as the source has it: C++ without parameters and return type, gfortran's and flang's module procedures as
/// `module::procedure`, functions of Cython as `module.function`, procedures in others without the number that gcc gives them. What
/// compilers append for parts of a function (`._omp_fn.0`, `.cold`) stays, and so does every other name.
///
/// ```
/// # use ompfuse_fuse::names::readable;
/// assert_eq!(readable("_ZN4mesh5Solve4stepILi3EEEvRKNS_4GridE._omp_fn.0"), "mesh::Solve::step<3>._omp_fn.0");
/// assert_eq!(readable("__lattice_MOD_sweep._omp_fn.1"), "lattice::sweep._omp_fn.1");
/// assert_eq!(readable("_QMlatticeFsweepPrelax..omp_par.1"), "lattice::sweep::relax..omp_par.1");
/// assert_eq!(readable("relax.0._omp_fn.1"), "relax._omp_fn.1");
/// assert_eq!(readable("main"), "main");
/// ```
#[must_use]
pub fn readable(symbol: &str) -> Cow<'_, str> {
    let (name, all) = symbol.split_at(symbol.find('.').unwrap_or(symbol.len()));
    let part = without_number(all);
    let fortran = || gfortran(name).or_else(|| flang(name));
    match cpp(name).or_else(fortran).or_else(|| cython(name)) {
        Some(name) => Cow::Owned(name + part),
        None if part.len() < all.len() && !name.is_empty() => Cow::Owned(format!("{name}{part}")),
        None => Cow::Borrowed(symbol),
    }
}

/// What follows a function's name, without the number that gcc gives functions in functions.
fn without_number(part: &str) -> &str {
    let rest = part
        .strip_prefix('.')
        .map(|p| p.trim_start_matches(|c: char| c.is_ascii_digit()));
    match rest {
        Some(rest) if rest.len() + 1 < part.len() && (rest.is_empty() || rest.starts_with('.')) => {
            rest
        }
        _ => part,
    }
}

/// A readable name with `<>` for template arguments; unchanged if its angles aren't pairs (`operator<`).
///
/// ```
/// # use ompfuse_fuse::names::without_arguments;
/// assert_eq!(without_arguments("scale<std::vector<long> >._omp_fn.0"), "scale<>._omp_fn.0");
/// ```
#[must_use]
pub fn without_arguments(name: &str) -> Cow<'_, str> {
    if name.contains("operator") || !name.contains('<') {
        return Cow::Borrowed(name);
    }
    let (mut out, mut depth) = (String::with_capacity(name.len()), 0_usize);
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
                None => return Cow::Borrowed(name),
            },
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    Cow::Owned(out)
}

/// What a function without name is called that begins at this link-time address.
#[must_use]
pub fn unnamed(begin: u64) -> String {
    format!("{begin:#x}")
}

/// Whether a function is called so: an address is no name in another build.
#[must_use]
pub fn is_unnamed(name: &str) -> bool {
    name.starts_with("0x")
}

/// A text with `<…>` for template arguments, the innermost first, until it has at most so many characters or none are left. It stays as it
/// is if its angles aren't pairs (`operator<`).
///
/// ```
/// # use ompfuse_fuse::names::narrowed;
/// let name = "solve.cc:61 scale<std::vector<double, std::allocator<double> > >";
/// assert_eq!(narrowed(name, 40), "solve.cc:61 scale<std::vector<…> >");
/// assert_eq!(narrowed(name, 10), "solve.cc:61 scale<…>");
/// ```
#[must_use]
pub fn narrowed(text: &str, most: usize) -> Cow<'_, str> {
    let mut short = Cow::Borrowed(text);
    for depth in (1..=deepest(text)).rev() {
        if short.chars().count() <= most {
            break;
        }
        short = Cow::Owned(without_depth(text, depth));
    }
    short
}

/// How deep template arguments are nested; 0 if its angles aren't pairs.
fn deepest(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for c in text.chars() {
        match c {
            '<' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            '>' if depth == 0 => return 0,
            '>' => depth -= 1,
            _ => {}
        }
    }
    match depth {
        0 => deepest,
        _ => 0,
    }
}

/// The text with `<…>` for template arguments that are nested so deep.
fn without_depth(text: &str, most: usize) -> String {
    let (mut out, mut depth) = (String::with_capacity(text.len()), 0_usize);
    for c in text.chars() {
        match c {
            '<' => {
                depth += 1;
                if depth <= most {
                    out.push('<');
                }
                if depth == most {
                    out.push('…');
                }
            }
            '>' => {
                if depth <= most {
                    out.push('>');
                }
                depth = depth.saturating_sub(1);
            }
            _ if depth < most => out.push(c),
            _ => {}
        }
    }
    out
}

/// What compilers append to the names of the functions that they make of parts of others, and of copies.
const PARTS: [&str; 9] = [
    "._omp_fn",
    ".omp_outlined",
    "..omp_par",
    ".extracted",
    ".DIR.OMP.",
    ".cold",
    ".part.",
    ".isra.",
    ".constprop.",
];

/// The function that a part or a copy was made of, by its name.
///
/// ```
/// # use ompfuse_fuse::names::origin;
/// assert_eq!(origin("heat._omp_fn.0"), "heat");
/// assert_eq!(origin("L_heat_61__par_region0_2_0"), "heat"); // Intel's classic compiler
/// assert_eq!(origin("main"), "main");
/// ```
#[must_use]
pub fn origin(name: &str) -> &str {
    if let Some(function) = of_icc(name) {
        return function;
    }
    let begins = PARTS.iter().filter_map(|part| name.find(part));
    match begins.min() {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// `L_function_line__par_kind...`, as Intel's classic compiler calls what it outlines.
fn of_icc(name: &str) -> Option<&str> {
    let (place, _) = name.strip_prefix("L_")?.split_once("__par_")?;
    let (function, line) = place.rsplit_once('_')?;
    let is_line = !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit());
    (is_line && !function.is_empty()).then_some(function)
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let symbol = Symbol::new(name).ok()?;
    symbol.demangle_with_options(&options).ok()
}

/// gfortran's `__module_MOD_procedure`.
fn gfortran(name: &str) -> Option<String> {
    let (module, procedure) = name.strip_prefix("__")?.split_once("_MOD_")?;
    (!module.is_empty() && !procedure.is_empty()).then(|| format!("{module}::{procedure}"))
}

/// flang's `_QMmodulePprocedure`: letters before the names tell modules, submodules, and the procedures that a procedure is in. The main
/// program has no name.
fn flang(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("_Q")?;
    let mut path: Vec<&str> = Vec::new();
    while let Some(kind) = rest.chars().next() {
        let behind = rest.get(1..)?;
        let end = behind.find(|c: char| c.is_ascii_uppercase());
        let (name, next) = behind.split_at(end.unwrap_or(behind.len()));
        match kind {
            'M' | 'S' | 'F' => path.extend((!name.is_empty()).then_some(name)),
            'P' if next.is_empty() && !name.is_empty() => {
                path.push(name);
                return Some(path.join("::"));
            }
            _ => return None,
        }
        rest = next;
    }
    None
}

/// What an error quotes of a text: its beginning, where it is long.
pub fn quoted(text: &str) -> Cow<'_, str> {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}

/// What comes before `main`, and below a thread's own function: nobody asks for it.
const BEGINNINGS: [&str; 6] = [
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "clone3",
];

/// Whether a call is before `main` or below a thread's own function, if nothing further out is known. `file`: name of its file.
pub fn is_beginning(function: Option<&str>, file: &str) -> bool {
    let name = function.unwrap_or_default();
    let name = name.split('@').next().unwrap_or_default();
    let is_c_library = file.starts_with("libc.so") || file.starts_with("libpthread.so");
    BEGINNINGS.contains(&name) || is_c_library
}

#[cfg(test)]
mod tests {
    use super::{narrowed, origin, quoted, readable, without_arguments};

    #[test]
    fn names_are_those_of_the_source() {
        for (symbol, name) in [
            ("_Z4workv", "work"),
            ("_Z4worki.omp_outlined", "work.omp_outlined"),
            (
                "_ZNKSt6vectorIiSaIiEE4sizeEv",
                "std::vector<int, std::allocator<int> >::size",
            ),
            ("_Z5scaleIlEvPT_lS0_._omp_fn.0", "scale<long>._omp_fn.0"),
            (
                "_Z5scaleImEvPT_lS0_.omp_outlined",
                "scale<unsigned long>.omp_outlined",
            ),
            ("_ZltRK1AS1_", "operator<"),
            ("_ZN1AC2Ev", "A::A"),
            ("_Znonsense", "_Znonsense"),
            ("_Z", "_Z"),
            (".omp_outlined.", ".omp_outlined."),
            ("__m_MOD_p", "m::p"),
            ("__MOD_", "__MOD_"),
            ("_QMmeshPrefine", "mesh::refine"),
            ("_QMmeshSfineFrefinePinner", "mesh::fine::refine::inner"),
            ("_QFPinner..omp_par", "inner..omp_par"),
            ("_QMmeshEtotal", "_QMmeshEtotal"),
            ("_QQmain", "_QQmain"),
            ("_QP", "_QP"),
            ("smooth.0", "smooth"),
            ("smooth.isra.0", "smooth.isra.0"),
            ("smooth.0a", "smooth.0a"),
            (".0", ".0"),
            ("", ""),
        ] {
            assert_eq!(readable(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn parts_and_arguments_are_left_out() {
        assert_eq!(origin("a<b.c>._omp_fn.0.cold"), "a<b.c>");
        assert_eq!(origin(".omp_outlined."), ".omp_outlined.");
        assert_eq!(origin("_QQmain..omp_par.4"), "_QQmain");
        assert_eq!(origin("main.DIR.OMP.PARALLEL.2.split"), "main");
        assert_eq!(origin("L__Z5solvev_61__par_loop0_2_0"), "_Z5solvev");
        assert_eq!(origin("L_x__par_y"), "L_x__par_y");
        assert_eq!(without_arguments("a<b<c> >::d<e>"), "a<>::d<>");
        assert_eq!(without_arguments("operator<"), "operator<");
        assert_eq!(narrowed("operator<", 1), "operator<");
        assert_eq!(narrowed("a<b<cc>, d<e> >", 14), "a<b<…>, d<…> >");
        assert_eq!(without_arguments("a>b"), "a>b");
    }

    #[test]
    fn only_the_beginning_of_a_long_text_is_quoted() {
        assert_eq!(quoted("task"), "task");
        let long = "ä".repeat(100);
        assert_eq!(quoted(&long), format!("{}...", "ä".repeat(80)));
    }
}
