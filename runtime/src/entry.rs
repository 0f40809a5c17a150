//! What comes with control from patched code, and how it goes on to the original target or to code of others.

mod call;
mod invoke;
mod protected;
mod site;

pub(crate) use call::Call;
pub(crate) use invoke::invoke;
pub(crate) use protected::{prepare, protected};
pub(crate) use site::{bound, bound_at, constants, region, this};
