//! A program that finds everything at the same addresses in each run: what it does with addresses (a table of hashed pointers, say) executes as
//! many instructions each time.

use nix::sys::personality::{self, Persona};
use ompfuse_format::run::ENV_PADDING;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The lengths of all added variables together are a multiple of this: they lie above the program's stack.
const STEP: usize = 4096;

/// Starts something whose addresses are not random, if that is wanted. Returns whether they aren't: filters of containers may forbid it.
pub(super) fn started<T>(is_wanted: bool, start: impl FnOnce() -> T) -> (bool, T) {
    if !is_wanted {
        return (false, start());
    }
    // Of this thread, and of what it starts.
    let before = personality::get();
    let wanted = |before| personality::set(before | Persona::ADDR_NO_RANDOMIZE);
    let is_set = before.is_ok_and(|before| wanted(before).is_ok());
    let started = start();
    if let (true, Ok(before)) = (is_set, before) {
        let _ = personality::set(before);
    }
    (is_set, started)
}

/// A variable that fills up the others: names of folders have different lengths.
pub(super) fn padding(env: &[(&'static str, OsString)]) -> (&'static str, OsString) {
    // `=` and the zero at the end.
    let len = |name: &str, value: &OsString| name.len() + value.as_bytes().len() + 2;
    let all: usize = env.iter().map(|(name, value)| len(name, value)).sum();
    let own = len(ENV_PADDING, &OsString::new());
    let missing = STEP - (all + own) % STEP;
    (ENV_PADDING, "-".repeat(missing).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_one_length() {
        for value in ["", "a", "/some/folder/run-0001"] {
            let mut env = vec![("OMPFUSE_DIR", OsString::from(value))];
            env.push(padding(&env));
            let len = |(name, value): &(&str, OsString)| name.len() + value.len() + 2;
            assert_eq!(env.iter().map(len).sum::<usize>() % STEP, 0, "{value}");
        }
    }
}
