//! The runtime library, the auditing library and the simulator's plugin, carried inside this executable (see `build.rs`).

use crate::atomic;
use anyhow::Result;
use flate2::read::GzDecoder;
use ompfuse_format::abi::RUNTIME_LIBRARY;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The runtime library's bytes.
pub(crate) static RUNTIME: &[u8] = include_bytes!(env!("OMPFUSE_EMBEDDED_RUNTIME"));

/// The auditing library's bytes.
pub(crate) static AUDIT: &[u8] = include_bytes!(env!("OMPFUSE_EMBEDDED_AUDIT"));

/// The simulated PMU's plugin for qemu-user, compressed by gzip.
static PLUGIN: &[u8] = include_bytes!(env!("OMPFUSE_EMBEDDED_SIMPMU"));
/// Its file's name.
pub(crate) const PLUGIN_NAME: &str = "libompfuse_simpmu.so";

/// Writes the simulated PMU's plugin into a folder.
pub(crate) fn place_plugin(folder: &Path) -> io::Result<()> {
    let mut file = File::create(folder.join(PLUGIN_NAME))?;
    io::copy(&mut GzDecoder::new(PLUGIN), &mut file).map(drop)
}

/// Puts the runtime library into a folder, unless it is there already.
pub(crate) fn place(folder: &Path) -> Result<PathBuf> {
    let path = folder.join(RUNTIME_LIBRARY);
    atomic::write_if_different(&path, RUNTIME, 0o755)?;
    Ok(path)
}
