//! `ompfuse man`.

mod markdown;

use crate::output;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// Print the manual page (`ompfuse man | man -l -`)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the page of this command (`cache list`: of that part of it)
    command: Vec<String>,
    /// Print the reference of all commands as Markdown
    #[arg(long, hide = true, conflicts_with = "command")]
    markdown: bool,
    /// Write the main page and one for each command into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    to: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let mut all = super::command();
    all.build();
    if args.markdown {
        return output::print(&markdown::page(&all));
    }
    if let Some(folder) = &args.to {
        return clap_mangen::generate_to(all, folder)
            .with_context(|| format!("cannot write manual pages to {}", folder.display()));
    }
    let mut command = all;
    for name in &args.command {
        let found = command.find_subcommand(name).cloned();
        command = found
            .with_context(|| format!("there is no command {name}; `ompfuse help` lists them"))?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    output::print_bytes(&page)
}
