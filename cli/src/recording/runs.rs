//! The runs of a recording, one after the other.

mod nothing;

pub(crate) use nothing::Nothing;

use super::meeting::{Meeting, Role};
use super::options::Rotation;
use super::strays::Watcher;
use super::volume::Volume;
use super::window::{Window, WindowArgs};
use super::{Recording, Run};
use crate::contexts;
use crate::counters;
use crate::debug::DebugArgs;
use crate::interrupt::Interrupted;
use crate::launch::{self, Ended, Feed, Launch, Moment, Stdout};
use crate::output::{self, note, remark, say};
use crate::program::{self, Prepared};
use crate::run_dir::{self, About, NUM_THREADS, Processes, Program};
use crate::running::{Reload, held};
use crate::sampling::places::{self, Names};
use crate::sampling::{Files, Rate, Sampler};
use crate::simulate::{Simulated, Simulator};
use anyhow::Result;
use ompfuse_account::job::worse;
use ompfuse_account::units::several;
use ompfuse_format::coverage::Coverage;
use ompfuse_format::event::exact;
use ompfuse_format::run::{
    BEGUN_FILE, ENV_CHEAP, ENV_CONTROL, ENV_DIR, ENV_EVENTS, ENV_REGION_EVENTS, ENV_ROTATE, Exit,
    ModuleStatus, RankEnd, RankState, RunModule, TAKES_TURNS,
};
use signal_hook::consts::SIGINT;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A line about patched files: what of their constructs is recorded, and what is lost.
fn patched(modules: &[RunModule]) -> String {
    let mut coverage = Coverage::default();
    for module in modules {
        coverage.add(&Coverage::of(&module.sites));
    }
    let recorded = coverage.with_probe;
    let all = recorded + coverage.lost();
    let word = if all == 1 { "construct" } else { "constructs" };
    let files = match modules {
        [one] => one.binary.path.clone(),
        [first, others @ ..] => {
            let name = Path::new(&first.binary.path)
                .file_name()
                .unwrap_or_default();
            let others = several(others.len() as u64, "more file");
            format!("{} and {others}", name.display())
        }
        [] => String::new(),
    };
    match coverage.lost() {
        0 => format!("patched {files}: {all} {word}"),
        lost => format!(
            "patched {files}: {recorded} of {all} {word}; {lost} can't be seen ({})",
            coverage.reasons()
        ),
    }
}

/// Whether another run makes sense.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    Stop,
}

/// A recording in progress.
pub(super) struct Recorder<'a> {
    /// The number of threads of the next run; `None`: as the environment has it.
    pub(super) threads: Option<u32>,
    /// How event sets share one run.
    pub(super) rotation: Option<Rotation>,
    /// Events that are counted per parallel region and thread.
    pub(super) of_regions: Vec<String>,
    /// Nobody has named the events: what needs a system call is counted per region too.
    pub(super) is_cheap: bool,
    /// How much is left out, as variables of the environment.
    pub(super) in_part: Vec<(&'static str, String)>,
    /// When to record.
    pub(super) window: &'a WindowArgs,
    pub(super) reload: Option<Reload>,
    /// Where to look for separate debug information.
    pub(super) debug: &'a DebugArgs,
    /// At so many bytes of records recording ends; `None`: half of what is free.
    pub(super) max_size: Option<u64>,
    pub(super) sampling: Rate,
    pub(super) program: Program<'a>,
    pub(super) prepared: Prepared,
    pub(super) simulator: Option<Simulator>,
    /// Where the program's standard output goes.
    pub(super) stdout: Stdout,
    /// What was said already.
    pub(super) told: BTreeSet<String>,
    pub(super) recording: Recording,
    /// With the other ranks of the program's job.
    pub(super) meeting: Option<Meeting>,
}

impl Recorder<'_> {
    /// One run. `stdin`: what the program reads, if that isn't this command's standard input.
    pub(super) fn run(&mut self, sets: &[Vec<String>], stdin: Option<&mut Feed>) -> Result<Then> {
        let set = &sets.concat();
        let path = match self.folder() {
            // Earlier runs are there, and how the program ended in them is handed on.
            Err(error) if !self.recording.runs.is_empty() => {
                note(format_args!("no further run: {}", crate::one_line(&error)));
                return Ok(Then::Stop);
            }
            made => made?,
        };
        let switch_cost_ns = match self.simulator {
            Some(_) => None,
            // Of sets that take turns one is on the counters at a time.
            None => (sets.iter().map(Vec::as_slice))
                .filter_map(counters::switch_cost_ns)
                .max(),
        };
        // For whoever reads what is left if this command is killed; on a full disk there is none.
        let mut about = About {
            events: set.clone(),
            region_events: self.of_regions.clone(),
            switch_cost_ns,
            threads: self.threads,
            ..About::default()
        };
        if !self.recording.is_told_by_another {
            let _ = run_dir::write_header(&path, &self.program, &about, None);
        }
        let volume = Volume::new(&path, self.max_size);
        let watcher = Watcher::default();
        let mut sampler = match self.simulator {
            None => Sampler::new(self.sampling, &path),
            Some(_) => None,
        };
        let launched = self.launch(&path, sets, stdin, (&volume, &watcher), sampler.as_mut());
        let sampled = match launched.is_ok() {
            true => sampler.map(Sampler::end),
            false => {
                sampler.into_iter().for_each(Sampler::discard);
                None
            }
        };
        if launched.is_err() && self.meeting.is_none() {
            let _ = std::fs::remove_file(path.join(BEGUN_FILE));
            let _ = std::fs::remove_dir(&path); // nothing else is in it
        }
        let (ended, recorded) = launched?;
        about.sampling = sampled;
        let Some(of_all) = self.meet_ranks(&path, ended, &mut about) else {
            return Ok(Then::Stop);
        };
        // Whatever fails from here on, the program's end is handed on.
        let processes = run_dir::read_processes(&path);
        let damaged = processes.as_ref().err().map(crate::one_line);
        let processes = processes.unwrap_or_else(|_| run_dir::readable_processes(&path));
        self.learn(processes.modules());
        let seen = processes.headers.iter().map(|h| h.pid).collect();
        let strays = watcher.strays(&seen);
        about.recorded = recorded;
        about.ended_at_bytes = volume.ended_at();
        about.unpatched = self.prepared.libraries.unpatched();
        let headed = run_dir::write_header(&path, &self.program, &about, Some(&of_all));
        if let Some(meeting) = &self.meeting {
            held::clear(&path);
            meeting.end(&path);
        }
        self.recording.interrupted = ended.interrupted;
        self.tell_failure(ended.exit);
        match headed {
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                note(format_args!(
                    "this run is lost: {}",
                    crate::one_line(&error)
                ));
                return Ok(Then::Stop);
            }
            Ok(()) => {}
        }
        if let Err(error) = contexts::name(&path, &self.program.modules, self.debug) {
            note(format_args!(
                "the callers of regions have no names: {}",
                crate::one_line(&error)
            ));
        }
        let is_killed = matches!(ended.exit, Exit::Signal(_));
        let has_failed = !matches!(ended.exit, Exit::Code(0));
        let file = self.prepared.file.canonicalize().ok();
        let file = file.and_then(|file| Some(file.to_str()?.to_owned()));
        // Without records stacks tell regions, and of who was killed what it was in.
        let programs = file.filter(|_| processes.headers.is_empty() || has_failed);
        if (about.sampling.as_ref()).is_some_and(|s| s.samples > 0 || has_failed)
            && let Err(error) = places::name(
                &path,
                Names {
                    modules: &self.program.modules,
                    debug: self.debug,
                    programs: programs.as_slice(),
                    files: &Files::default(),
                },
            )
        {
            note(format_args!(
                "samples have no names: {}",
                crate::one_line(&error)
            ));
        }
        let is_killed = is_killed && ended.interrupted.is_none() && !self.is_stopped();
        if is_killed && about.sampling.as_ref().is_some_and(|s| s.reason.is_none()) {
            let run = path.display();
            remark(format_args!(
                "what its threads did last: ompfuse report --lines {run}"
            ));
        }
        if let Some(damaged) = damaged {
            note(format_args!("a part of this run is lost: {damaged}"));
        } else if processes.headers.is_empty() {
            return self.nothing(&path, &strays);
        }
        for stray in strays {
            let line = stray.told(&self.recording.folder);
            if self.told.insert(line.clone()) {
                note(format_args!("a part is not recorded: {line}"));
            }
        }
        self.tell(&path, &processes, &about.ranks);
        self.recording.runs.push(Run {
            lost: processes.lost,
            threads_lost: processes.threads_lost,
            threads: self.threads,
            path,
            events: set.to_vec(),
            region_events: self.of_regions.clone(),
            duration_s: of_all.duration_s,
            exit: of_all.exit,
        });
        let stop = ended.interrupted.is_some() || matches!(ended.exit, Exit::Signal(_));
        Ok(if stop { Then::Stop } else { Then::GoOn })
    }

    /// The end of all ranks of the job; `None`: another one tells of them.
    fn meet_ranks(&mut self, path: &Path, ended: Ended, about: &mut About) -> Option<Ended> {
        let Some(meeting) = &self.meeting else {
            return Some(ended);
        };
        let told = meeting.ended(path, ended.exit, ended.duration_s);
        let did_well = ended.exit == Exit::Code(0) && ended.interrupted.is_none();
        let ranks = match told {
            Ok(()) => meeting.finish(path, meeting.is_leader() && did_well),
            Err(error) => {
                note(crate::one_line(&error));
                None // who waits for it sees that this command is gone
            }
        };
        self.recording.is_told_by_another = ranks.is_none();
        output::mute(ranks.is_none());
        let Some(ranks) = ranks else {
            self.recording.interrupted = ended.interrupted;
            self.tell_failure(ended.exit);
            return None;
        };
        let of_all = ended_with(&ended, &ranks);
        about.ranks = ranks;
        Some(of_all)
    }

    /// The next run's folder.
    fn folder(&self) -> Result<PathBuf> {
        match &self.meeting {
            None => self.next_run(),
            Some(meeting) => match &meeting.role {
                Role::Leader => {
                    let run = self.next_run()?;
                    meeting.tell(&run)?;
                    Ok(run)
                }
                Role::Member(run) => Ok(run.clone()),
            },
        }
    }

    fn next_run(&self) -> Result<PathBuf> {
        let folder = &self.recording.folder;
        match self.threads {
            None => run_dir::make_run(folder),
            Some(threads) => run_dir::make_run(&run_dir::make_of_threads(folder, threads)?),
        }
    }

    /// Somebody has stopped this command and the program from the terminal, and knows that.
    fn is_stopped(&self) -> bool {
        self.recording.interrupted == Some(SIGINT)
    }

    /// Says how the program failed, if it did; its status is handed on.
    fn tell_failure(&mut self, exit: Exit) {
        let failed = launch::status_of(exit);
        if failed == 0 {
            return;
        }
        if !self.is_stopped() {
            let program = Path::new(self.program.name).display();
            let rank = self
                .meeting
                .as_ref()
                .map(|m| format!(" (rank {})", m.rank()));
            say(format_args!(
                "{program}{} failed: {}",
                rank.unwrap_or_default(),
                launch::describe(exit)
            ));
        }
        if self.recording.status == 0 {
            self.recording.status = failed;
        }
    }

    /// Takes in the patched files that processes have loaded, and says what they are.
    fn learn<'m>(&mut self, modules: impl Iterator<Item = &'m ModuleStatus>) {
        let before = self.program.modules.len();
        for status in modules {
            let known = |m: &RunModule| m.patched == status.path;
            if self.program.modules.iter().any(known) {
                continue;
            }
            let Some(module) = program::loaded(Path::new(&status.path)) else {
                continue; // whoever reads the run is told
            };
            self.program.modules.push(module);
        }
        let new = &self.program.modules[before..];
        if !new.is_empty() {
            remark(patched(new));
        }
        for wait in self.prepared.libraries.waits() {
            if self.told.insert(wait.clone()) {
                note(wait);
            }
        }
        for reason in self.prepared.libraries.refusals() {
            if self.told.insert(reason.clone()) {
                note(reason);
            }
        }
    }

    /// Runs the program to its end.
    fn launch(
        &self,
        run: &Path,
        sets: &[Vec<String>],
        stdin: Option<&mut Feed>,
        (volume, watcher): (&Volume, &Watcher),
        sampler: Option<&mut Sampler>,
    ) -> Result<(Ended, Option<Vec<[f64; 2]>>)> {
        let sets: Vec<String> = sets.iter().map(|set| set.join(",")).collect();
        let between = if self.rotation == Some(Rotation::Kernel) {
            TAKES_TURNS
        } else {
            ';'
        };
        let mut env = vec![
            (ENV_DIR, run.as_os_str().to_owned()),
            (ENV_EVENTS, sets.join(&between.to_string()).into()),
        ];
        if !self.of_regions.is_empty() {
            env.push((ENV_REGION_EVENTS, self.of_regions.join(",").into()));
        }
        if self.is_cheap {
            env.push((ENV_CHEAP, "1".into()));
        }
        if let Some(Rotation::Instances(n)) = self.rotation {
            env.push((ENV_ROTATE, n.to_string().into()));
        }
        let in_part = self.in_part.iter();
        env.extend(in_part.map(|(name, value)| (*name, value.into())));
        let control = self.reload.as_ref().map(|r| r.file.clone().into());
        env.extend(control.map(|file| (ENV_CONTROL, file)));
        let window = Window::open(self.window, run)?;
        env.extend((self.threads).map(|n| (NUM_THREADS, n.to_string().into())));
        env.extend_from_slice(&self.prepared.env);
        if self.simulator.is_none() {
            watcher.expect(&env);
        }
        let limit = sampler.as_ref().map(|s| s.limit());
        let look = |now: Moment| {
            watcher.look(now.process);
            if now.is_early {
                return;
            }
            self.reload.iter().for_each(|r| r.look(run));
            window.look();
            self.meeting.iter().for_each(|m| m.touch(run));
            volume.look();
            if let (Some(limit), Some(bytes)) = (&limit, volume.ended_at()) {
                limit.reached(bytes);
            }
        };
        let meanwhile: Option<&dyn Fn(Moment)> = Some(&look);
        let (file, name, args) = (
            self.prepared.file.as_path(),
            self.program.name,
            self.program.args,
        );
        let simulated = match &self.simulator {
            Some(simulator) => Some(simulator.command(file, name, args, &env)?),
            None => None,
        };
        let mut events = sets.iter().flat_map(|set| set.split(','));
        let is_steady = simulated.is_some() || events.any(exact::is);
        let launch = match &simulated {
            Some(Simulated {
                file, args, env, ..
            }) => Launch {
                file,
                name: file.as_os_str(),
                args,
                env: env.clone(),
                folder: None,
                is_steady,
                stdout: &self.stdout,
                stdin,
                meanwhile,
                sampler,
            },
            None => Launch {
                file,
                name,
                args,
                env,
                folder: None,
                is_steady,
                stdout: &self.stdout,
                stdin,
                meanwhile,
                sampler,
            },
        };
        let ended = launch::run(launch);
        if let Some(reload) = &self.reload {
            reload.end();
        }
        let recorded = window.end();
        if self.meeting.is_none() {
            held::clear(run); // else when all ranks are at their end
        }
        Ok((ended?, recorded))
    }

    /// Says, once each, what was not as wanted in a run.
    fn tell(&mut self, run: &Path, processes: &Processes, ranks: &[RankEnd]) {
        let reasons = processes
            .headers
            .iter()
            .flat_map(|h| h.events.iter().chain(&h.region_events))
            .chain(processes.sets.iter().flat_map(|s| &s.events))
            .filter_map(|e| e.reason.clone());
        // Who lost something has said so, and the sum is said below.
        let others = processes.ends.iter();
        let others = others.filter(|e| e.lost == 0 && e.threads_lost == 0);
        let stopped = others.filter_map(|e| e.stopped.clone());
        let threads = match processes.threads_lost {
            1 => "a thread could not be recorded".to_owned(),
            threads => format!("{threads} threads could not be recorded"),
        };
        let losses = match (processes.lost, processes.threads_lost) {
            (0, 0) => None,
            (lost, 0) => Some(format!("{lost} records could not be written")),
            (0, _) => Some(threads),
            (lost, _) => Some(format!("{lost} records could not be written and {threads}")),
        };
        let losses = losses.map(|what| {
            let run = run.display();
            format!("{what} in {run} (disk full, a limit, out of reach, or a signal handler stored its own)")
        });
        let ranks = ompfuse_report::words::rank_ends(ranks);
        for message in reasons.chain(stopped).chain(losses).chain(ranks) {
            if self.told.insert(message.clone()) {
                note(message);
            }
        }
    }
}

/// The end of all ranks of a job together: that of the rank that failed, not those that its launcher ended for it, and the longest time.
fn ended_with(own: &Ended, ranks: &[RankEnd]) -> Ended {
    let exit = |rank: &RankEnd| match rank.state {
        RankState::Ended(exit) => Some(exit),
        RankState::Killed | RankState::GoesOn => Some(Exit::Unknown),
        RankState::Missing => None,
    };
    let ends = ranks.iter().filter_map(exit).map(Some);
    let failed = ends.reduce(worse).flatten().filter(|e| *e != Exit::Code(0));
    let longest = ranks.iter().filter_map(|r| r.duration_s);
    Ended {
        exit: failed.unwrap_or(own.exit),
        duration_s: longest.fold(own.duration_s, f64::max),
        // The other ranks' commands have started what seems another program's here.
        used: crate::processors::Used {
            others_s: own.used.others_s.filter(|_| ranks.len() <= 1),
            ..own.used
        },
        ..*own
    }
}
