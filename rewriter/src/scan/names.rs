//! What names tell: which functions never return, and which are parts of an OpenMP runtime; which variables are critical sections'.

/// Functions that don't return.
const NO_RETURN: &[&str] = &[
    "_Exit",
    "_Unwind_Resume",
    "_ZSt9terminatev",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__chk_fail",
    "__clang_call_terminate",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_unexpected",
    "__cxa_deleted_virtual",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__longjmp_chk",
    "__stack_chk_fail",
    "_exit",
    "_gfortran_error_stop_numeric",
    "_gfortran_error_stop_string",
    "_gfortran_os_error",
    "_gfortran_os_error_at",
    "_gfortran_runtime_error",
    "_gfortran_runtime_error_at",
    "_gfortran_stop_numeric",
    "_gfortran_stop_string",
    "_longjmp",
    "abort",
    "err",
    "errx",
    "exit",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "siglongjmp",
    "verr",
    "verrx",
];

/// Prefix of the library functions that throw (`std::__throw_...`).
const THROWERS: &str = "_ZSt";

/// Prefixes of the functions that runtimes are made of.
const RUNTIME_INTERNALS: &[&str] = &[
    "GOMP_",
    "GOACC_",
    "gomp_",
    "goacc_",
    "__kmp",
    "kmp_",
    "omp_",
    "ompt_",
    "__ompt",
    "ompc_",
    "simple_alloc_splay_tree_",
];

/// Prefix of the variables that gcc and clang make for named critical sections.
pub(super) const CRITICAL_PREFIX: &str = ".gomp_critical_user_";

/// Whether a call to this symbol never comes back.
pub(super) fn is_no_return(symbol: &str) -> bool {
    NO_RETURN.binary_search(&symbol).is_ok()
        || (symbol.starts_with(THROWERS) && symbol.contains("__throw_"))
        || is_sanitizers_end(symbol)
}

/// Whether a sanitizer reports an error with it and ends the program. Programs that go on after errors
/// (`-fsanitize-recover`) call functions of other names.
fn is_sanitizers_end(symbol: &str) -> bool {
    let reports = symbol.starts_with("__asan_report_") && !symbol.ends_with("_noabort");
    let handles = symbol.starts_with("__ubsan_handle_") && symbol.ends_with("_abort");
    reports
        || handles
        || matches!(
            symbol,
            "__msan_warning_noreturn"
                | "__msan_warning_with_origin_noreturn"
                | "__ubsan_handle_builtin_unreachable"
                | "__ubsan_handle_missing_return"
        )
}

/// Whether a function of this name belongs to the runtime, so that its calls are no constructs of the program.
pub(super) fn is_runtime_internal(name: &str) -> bool {
    let is = |name: &str| RUNTIME_INTERNALS.iter().any(|p| name.starts_with(p));
    is(name) || parts_of_mangled(name).any(is)
}

/// The names at the beginning of a C++ name (libomp is written in C++): namespaces, then the function's own, each behind
/// its length (Itanium C++ ABI, 5.1).
fn parts_of_mangled(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name
        .strip_prefix("_Z")
        .unwrap_or_default()
        .trim_start_matches(['L', 'N', 'K']);
    std::iter::from_fn(move || {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let len = rest.get(..digits)?.parse().ok()?;
        let part = rest.get(digits..)?.get(..len)?;
        rest = &rest[digits + len..];
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_linked_in_runtime() {
        for name in [
            "__kmp_fork_call",
            "gomp_team_start",
            "simple_alloc_splay_tree_insert",
            "_ZL22__kmp_serial_fork_callP5identi14fork_context_e",
            "_ZN12_GLOBAL__N_130__kmp_hidden_helper_wrapper_fnEPiS0_z",
            "_Z34__kmp_task_reduction_modifier_initI17kmp_taskred_inputEPvP5identiiiPT_",
        ] {
            assert!(is_runtime_internal(name), "{name}");
        }
        for name in [
            "main",
            "_Z",
            "_Z3fooP5ident",
            "_ZN4gomp3runEv",
            "_ZL999__kmp",
            "_ZL3",
        ] {
            assert!(!is_runtime_internal(name), "{name}");
        }
    }

    #[test]
    fn names_that_do_not_return_are_sorted() {
        assert!(NO_RETURN.is_sorted());
        assert!(is_no_return("abort") && is_no_return("_ZSt20__throw_length_errorPKc"));
        assert!(
            is_no_return("__asan_report_load4")
                && is_no_return("__ubsan_handle_divrem_overflow_abort")
        );
        assert!(
            !is_no_return("__asan_report_load4_noabort")
                && !is_no_return("__ubsan_handle_divrem_overflow")
        );
        assert!(!is_no_return("printf"));
    }
}
