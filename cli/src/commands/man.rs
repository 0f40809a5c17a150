//! `ompfuse man`.

mod markdown;

use crate::output;
use anyhow::{Context, Result};
use clap::CommandFactory;

/// Print the manual page (`ompfuse man | man -l -`)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the page of this command (`cache list`: of that part of it)
    command: Vec<String>,
    /// Print the reference of all commands as Markdown
    #[arg(long, hide = true, conflicts_with = "command")]
    markdown: bool,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let mut all = super::Cli::command();
    all.build();
    if args.markdown {
        return output::print(&markdown::page(&all));
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
