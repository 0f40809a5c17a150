//! Running a program under the simulated PMU: qemu-user with our plugin.

use crate::counters::EventCheck;
use crate::embedded;
use crate::interrupt;
use crate::launch;
use anyhow::{Context, Result, bail, ensure};
use ompfuse_format::simulated::{DEFAULT_EVENTS, ENV_SIMULATED, EVENTS, position};
use ompfuse_simpmu::Options;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// qemu's user mode for x86-64.
const QEMU: &str = "qemu-x86_64";
/// What to do where there is no qemu, or one that is of no use.
pub(crate) const REMEDY: &str = "apt-get install qemu-user on Debian 12, Ubuntu 22.04 or 24.04 (versions 6.0 to 8.2 can load the plugin)";

/// Options of every command that can simulate.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SimulateArgs {
    /// Run the program under qemu-user, which simulates a processor's counters
    #[arg(long, value_name = "MODEL", num_args = 0..=1, require_equals = true, default_missing_value = "", long_help = model_help())]
    simulate: Option<Options>,
}

fn model_help() -> String {
    format!(
        "Run the program under qemu-user, which simulates a processor's counters\n\nSome 100 times slower. `ompfuse events` lists the \
         simulated events. MODEL: sizes (KiB; dtlb: pages) and ways of the simulated caches, bits of branch history, and whether the C \
         library counts; what it doesn't name is as in {}.",
        Options::default()
    )
}

impl SimulateArgs {
    /// The simulator, if it is wanted.
    pub(crate) fn simulator(&self) -> Result<Option<Simulator>> {
        self.simulate.map(Simulator::prepare).transpose()
    }

    /// Whether it is wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        self.simulate.is_some()
    }
}

/// A qemu that can load the plugin.
#[derive(Debug)]
pub(crate) struct Simulator {
    qemu: PathBuf,
    options: Options,
    /// The plugin, and a folder per run.
    folder: TempDir,
    /// A signal would leave the folder behind. It is acted upon before the next run, and by runs themselves.
    hold: interrupt::Hold,
}

/// A command line.
#[derive(Debug)]
pub(crate) struct Simulated {
    /// qemu.
    pub(crate) file: PathBuf,
    /// Its arguments, and the program's.
    pub(crate) args: Vec<OsString>,
    /// Variables for both.
    pub(crate) env: Vec<(&'static str, OsString)>,
    /// The pages of the run.
    _pages: TempDir,
}

impl Simulator {
    /// Finds qemu and tries it.
    fn prepare(options: Options) -> Result<Simulator> {
        let qemu = launch::find(OsStr::new(QEMU))
            .with_context(|| format!("cannot simulate: {QEMU} is not installed; {REMEDY}"))
            .map_err(|e| anyhow::anyhow!("{e}"))?;
        let hold = interrupt::hold();
        let folder = tempfile::Builder::new()
            .prefix("ompfuse-simpmu-")
            .tempdir()
            .context("cannot make a folder for the simulator's plugin")?;
        embedded::place_plugin(folder.path()).context("cannot write the simulator's plugin")?;
        let simulator = Simulator {
            qemu,
            options,
            folder,
            hold,
        };
        simulator.try_out()?;
        Ok(simulator)
    }

    /// Runs a program that is certainly there: this one.
    fn try_out(&self) -> Result<()> {
        let own = std::env::current_exe().context("cannot find this command's own file")?;
        let trial = self.command(&own, OsStr::new("ompfuse"), &["--version".into()], &[])?;
        let output = Command::new(&trial.file)
            .args(&trial.args)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot simulate: cannot start {}", self.qemu.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let first = words.lines().map(str::trim).find(|l| !l.is_empty());
        bail!(
            "cannot simulate: {} does not run the plugin ({}); {REMEDY}",
            self.qemu.display(),
            first.unwrap_or("it says nothing")
        )
    }

    /// How a program is started under the simulator. `env`: variables that the program needs.
    pub(crate) fn command(
        &self,
        file: &Path,
        name: &OsStr,
        args: &[OsString],
        env: &[(&'static str, OsString)],
    ) -> Result<Simulated> {
        self.hold.check()?;
        let pages = tempfile::Builder::new()
            .tempdir_in(self.folder.path())
            .context("cannot make a folder for the simulator's counts")?;
        // qemu writes a comma in a value as two.
        let doubled = |path: &Path| path.to_string_lossy().replace(',', ",,");
        let mut list: Vec<OsString> = [
            "-cpu".to_owned(),
            "max".to_owned(),
            "-plugin".to_owned(),
            format!(
                "{},folder={},{}",
                doubled(&self.folder.path().join(embedded::PLUGIN_NAME)),
                doubled(pages.path()),
                self.options
            ),
        ]
        .map(OsString::from)
        .into();
        // Functions are bound before the program starts, since it would be chance who calls one first.
        let mut own = vec![("LD_BIND_NOW", OsString::from("1"))];
        let mut both = vec![(ENV_SIMULATED, pages.path().as_os_str().to_owned())];
        for (variable, value) in env {
            // qemu itself must not load what the program loads.
            let to = if variable.starts_with("LD_") {
                &mut own
            } else {
                &mut both
            };
            to.push((variable, value.clone()));
        }
        for (variable, value) in own {
            ensure!(
                !value.as_encoded_bytes().contains(&b','),
                "cannot simulate: qemu takes no comma in a value, and {variable} is {}",
                value.display()
            );
            let mut set = OsString::from(variable);
            set.push("=");
            set.push(value);
            list.extend(["-E".into(), set]);
        }
        list.extend(["-0".into(), name.into(), file.into()]);
        list.extend_from_slice(args);
        Ok(Simulated {
            file: self.qemu.clone(),
            args: list,
            env: both,
            _pages: pages,
        })
    }
}

/// Refuses what qemu-user can't run.
pub(crate) fn check_program(file: &Path, bytes: &[u8]) -> Result<()> {
    // ELF, 64 bits, and the machine's number of x86-64.
    let is_fit = bytes.starts_with(b"\x7fELF\x02") && bytes.get(18..20) == Some(&[62, 0]);
    ensure!(
        is_fit,
        "cannot simulate {}: it is no x86-64 program (ELF); give the program that it starts",
        file.display()
    );
    Ok(())
}

/// The wanted events; without a wish as many as fit into one run.
pub(crate) fn events(wanted: Option<&str>) -> Result<Vec<&'static str>> {
    let all = || EVENTS.iter().map(|e| e.name);
    let Some(list) = wanted else {
        return Ok(all().take(DEFAULT_EVENTS).collect());
    };
    let mut names = Vec::new();
    for name in list.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        if name == "all" {
            return Ok(all().collect());
        }
        let Some(at) = position(name) else {
            bail!(
                "the simulator does not count `{name}`; it counts {}",
                all().collect::<Vec<_>>().join(", ")
            );
        };
        if !names.contains(&EVENTS[at].name) {
            names.push(EVENTS[at].name);
        }
    }
    ensure!(
        !names.is_empty(),
        "no event given; `ompfuse events` lists them"
    );
    Ok(names)
}

/// Finds out whether programs can be simulated here: the simulator's path.
pub(crate) fn check() -> Result<PathBuf> {
    Ok(Simulator::prepare(Options::default())?.qemu)
}

/// The simulated events, and whether they can be counted here.
pub(crate) fn check_all() -> Vec<EventCheck> {
    let refusal = Simulator::prepare(Options::default()).err();
    let reason = refusal.map(|e| format!("{e:#}"));
    let check = |event: &ompfuse_format::simulated::Event| EventCheck {
        name: event.name,
        alias: None,
        what: event.what,
        kind: "simulated",
        available: reason.is_none(),
        includes_kernel: false,
        moves: false,
        forbidden: false,
        reason: reason.clone(),
        remedy: reason.is_some().then(|| REMEDY.to_owned()),
    };
    EVENTS.iter().map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_events_are_checked() {
        assert_eq!(events(None).unwrap().len(), DEFAULT_EVENTS);
        assert_eq!(events(Some("all")).unwrap().len(), EVENTS.len());
        assert_eq!(
            events(Some("sim-loads, sim-calls,sim-loads")).unwrap(),
            ["sim-loads", "sim-calls"]
        );
        let error = events(Some("cycles")).unwrap_err().to_string();
        assert!(error.starts_with("the simulator does not count `cycles`; it counts sim-inst"));
        assert!(events(Some(",")).is_err());
    }

    #[test]
    fn only_x86_64_programs_are_simulated() {
        let own = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&own).unwrap();
        assert!(check_program(&own, &bytes).is_ok());
        let error = check_program(Path::new("x.sh"), b"#!/bin/sh\n").unwrap_err();
        assert!(error.to_string().starts_with("cannot simulate x.sh: "));
    }
}
