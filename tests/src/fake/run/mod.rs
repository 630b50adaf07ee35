//! `fake run`: a headless program that does what a script says: speaks, hangs, is deaf to signals, leaves children of
//! every kind. What it did and saw stands in its record. `docs/fake.md` describes the script. Steps that concern a
//! terminal are done by [`tui`], those of an app-server by [`server`](super::server).

pub(super) mod children;
mod forks;
pub(super) mod gates;
pub(super) mod record;
pub mod script;
mod signals;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::server::Server;
use super::tui::{self, Terminal};
use children::Children;
use gates::Gates;
use record::Record;
use script::{Child, Step, To};
use signals::Wanted;

/// How long a process of `fake run` lives at most, so that none is left to a machine by a test that failed.
const LIFE: Duration = Duration::from_secs(600);

/// The nasty tree: how many of a kind, and what each does. With its root it is 57 processes that stay, beside those that
/// two breed and one that never stays the same.
const TREE: [(usize, &str); 10] = [
    (10, "child : ignore HUP INT TERM; hang"),
    (6, "child : ignore HUP INT TERM; parent : ignore HUP INT TERM; hang"),
    (8, "child : setsid; ignore HUP INT TERM; hang"),
    (8, "child : setsid; child : setsid; ignore HUP INT TERM; hang"),
    (4, "child : group; ignore HUP INT TERM; hang"),
    (4, "child : child cleared : setsid; ignore HUP INT TERM; hang"),
    (4, "child : on TERM child : setsid; ignore TERM; hang"),
    (3, "child holding-stdout holding-stderr : setsid; ignore HUP INT TERM; hang"),
    (2, "child : setsid; ignore TERM; breed 2ms"),
    (1, "child : setsid; hop 0"),
];
/// Processes of the tree that stay, its root left out.
const TREE_STAYS: usize = 56;

/// One running program.
pub struct Context {
    record: Record,
    gates: Gates,
    wanted: Wanted,
    /// What was read last.
    input: Mutex<Vec<u8>>,
    children: Arc<Children>,
    terminal: OnceLock<Terminal>,
    server: OnceLock<Arc<Server>>,
}

impl Context {
    fn terminal(&self) -> &Terminal {
        self.terminal.get_or_init(|| Terminal::new(&self.record, &self.children))
    }

    fn server(&self) -> &Arc<Server> {
        self.server.get_or_init(|| Server::new(&self.record))
    }
}

/// Runs what the arguments after `run` name: a script file, or `-e STEPS`.
pub fn main(arguments: &[String]) -> ExitCode {
    start(arguments, false)
}

/// The same in a terminal: one that the script does not take is taken at its end.
pub fn main_in_terminal(arguments: &[String]) -> ExitCode {
    start(arguments, true)
}

fn start(arguments: &[String], takes_terminal: bool) -> ExitCode {
    match run(arguments, takes_terminal) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "fake: {error:#}");
            ExitCode::from(64)
        }
    }
}

/// The script that lies beside this program under the name by which it was called, if there is one.
pub fn beside() -> Option<PathBuf> {
    let name = PathBuf::from(std::env::args_os().next()?);
    let script = |path: &Path| {
        let mut file = path.as_os_str().to_owned();
        file.push(".script");
        Some(PathBuf::from(file)).filter(|file| file.is_file())
    };
    if name.components().count() > 1 {
        return script(&name);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find_map(|folder| script(&folder.join(&name)))
}

fn run(arguments: &[String], takes_terminal: bool) -> Result<ExitCode> {
    let context = Arc::new(Context {
        record: Record::default(),
        gates: Gates::default(),
        wanted: Wanted::default(),
        input: Mutex::default(),
        children: Arc::default(),
        terminal: OnceLock::new(),
        server: OnceLock::new(),
    });
    let mut steps = match arguments {
        [flag, steps, record @ ..] if flag == "-e" => {
            if let [path] = record {
                context.record.open(Path::new(path));
            }
            script::list(steps)?
        }
        [file, ..] => script::parse(&std::fs::read_to_string(file).with_context(|| file.clone())?)?,
        [] => bail!("usage: fake run SCRIPT"),
    };
    if std::env::args().any(|argument| argument == "--version") {
        for step in &steps {
            if let Step::Version(text) = step {
                write(To::Stdout, format!("{text}\n").as_bytes());
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
    if takes_terminal && !steps.contains(&Step::Tui(tui::Step::Terminal)) {
        steps.push(Step::Tui(tui::Step::Terminal));
    }
    signals::take(&context);
    std::thread::spawn({
        let context = Arc::clone(&context);
        move || {
            context.gates.pass(LIFE);
            std::process::exit(70);
        }
    });
    // Before anything else can come from it.
    for step in &steps {
        if let Step::Record(path) = step {
            context.record.open(path);
        }
    }
    let parent = std::os::unix::process::parent_id();
    context.record.note("started", json!({ "parent": parent }));
    run_steps(&context, &steps);
    let stays = context.terminal.get().is_some() || context.server.get().is_some();
    if stays || matches!(steps.last(), Some(Step::On(..))) {
        run_steps(&context, &[Step::Hang]);
    }
    Ok(ExitCode::SUCCESS)
}

fn run_steps(context: &Arc<Context>, steps: &[Step]) {
    for step in steps {
        if let Err(error) = run_step(context, step) {
            context
                .record
                .note("failed", json!({ "step": format!("{step:?}"), "error": format!("{error:#}") }));
        }
    }
}

fn run_step(context: &Arc<Context>, step: &Step) -> Result<()> {
    match step {
        Step::Record(path) => context.record.open(path),
        Step::Control(path) => control(context, path)?,
        Step::Version(_) => {}
        Step::Title(name) => std::fs::write("/proc/self/comm", name)?,
        Step::Show => show(context),
        Step::Note(text) => context.record.note("note", json!({ "text": text })),
        Step::ReadStdin => {
            let mut input = Vec::new();
            std::io::stdin().read_to_end(&mut input)?;
            read(context, "stdin", input);
        }
        Step::ReadFile(path) => read(context, &path.display().to_string(), std::fs::read(path)?),
        Step::Echo => write(To::Stdout, &context.input.lock().expect("nobody panics with it")),
        Step::Write(to, bytes) => write(*to, bytes),
        Step::Flood(to, bytes) => flood(*to, *bytes),
        Step::Line(bytes) => {
            flood(To::Stdout, Some(bytes.saturating_sub(1)));
            write(To::Stdout, b"\n");
        }
        Step::Sleep(time) => context.gates.pass(*time),
        Step::Hang => {
            context.record.note("stays", json!({}));
            loop {
                context.gates.pass(LIFE);
            }
        }
        Step::Burn(time) => {
            let end = Instant::now() + time.unwrap_or(LIFE);
            while Instant::now() < end {
                std::hint::spin_loop();
            }
        }
        Step::Ignore(signals) => signals.iter().for_each(|signal| context.wanted.set(*signal, Vec::new())),
        Step::On(signal, steps) => context.wanted.set(*signal, steps.clone()),
        Step::Wait(word) => context.gates.wait(word),
        Step::Go(word) => context.gates.open(word),
        Step::Repeat(times, gap, steps) => {
            let mut done = 0;
            while times.is_none_or(|times| done < times) {
                run_steps(context, steps);
                context.gates.pass(*gap);
                done += 1;
            }
        }
        Step::Exit(code) => {
            context.record.note("exits", json!({ "code": code }));
            tui::leave();
            std::process::exit(*code)
        }
        Step::Die(signal) => {
            context.record.note("dies", json!({ "signal": signal.as_str() }));
            tui::leave();
            let this: nix::sys::signal::SigSet = [*signal].into_iter().collect();
            let _ = this.thread_unblock();
            nix::sys::signal::raise(*signal)?;
        }
        Step::RemoveDirectory => std::fs::remove_dir_all(std::env::current_dir()?)?,
        Step::Setsid => drop(nix::unistd::setsid()?),
        Step::Group => {
            let own = nix::unistd::Pid::from_raw(0);
            nix::unistd::setpgid(own, own)?;
        }
        Step::Spawn(how, steps) => spawn(context, *how, steps)?,
        Step::Breed(gap) => {
            context.record.note("stays", json!({}));
            forks::breed(*gap)
        }
        Step::Hop(gap) => {
            context.record.note("stays", json!({}));
            forks::hop(*gap)
        }
        Step::Tree => tree(context)?,
        Step::Tui(step) => context.terminal().perform(step)?,
        Step::Server(step) => context.server().perform(step)?,
    }
    Ok(())
}

fn spawn(context: &Context, how: Child, steps: &str) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg0("fake").args(["run", "-e", steps]);
    command.args(context.record.path());
    let kept = |kept: bool| if kept { Stdio::inherit() } else { Stdio::null() };
    command.stdin(Stdio::null()).stdout(kept(how.stdout)).stderr(kept(how.stderr));
    if how.cleared {
        command.env_clear();
    }
    let child = command.spawn()?;
    context.record.note("child", json!({ "child": child.id(), "steps": steps }));
    Ok(())
}

/// All of the tree, until everybody in it stays.
fn tree(context: &Arc<Context>) -> Result<()> {
    let path = context.record.path().context("a tree needs a record")?;
    let stay = || std::fs::read_to_string(&path).unwrap_or_default().matches("\"what\":\"stays\"").count();
    let before = stay();
    for (many, what) in TREE {
        for _ in 0..many {
            run_steps(context, &script::list(what)?);
        }
    }
    while stay() < before + TREE_STAYS {
        context.gates.pass(Duration::from_millis(2));
    }
    context.record.note("tree", json!({ "processes": TREE_STAYS + 1 }));
    Ok(())
}

/// Arguments, environment, working directory, descriptors, session and group.
fn show(context: &Context) {
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    let environment: serde_json::Map<_, _> =
        std::env::vars_os().map(|(name, value)| (text(name), json!(text(value)))).collect();
    let arguments: Vec<String> = std::env::args_os().map(text).collect();
    let mut descriptors = serde_json::Map::new();
    for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default().to_string_lossy().into_owned();
        // The one that lists them is none of them.
        if target != format!("/proc/{}/fd", std::process::id()) {
            descriptors.insert(text(entry.file_name()), json!(target));
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap_or_default().trim();
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let oom = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let nice = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(16)?.parse::<i32>().ok());
    let dir = std::env::current_dir().map(|dir| dir.to_string_lossy().into_owned()).ok();
    context.record.note(
        "shown",
        json!({
            "arguments": arguments, "environment": environment, "dir": dir, "descriptors": descriptors,
            "session": nix::unistd::getsid(None).map(nix::unistd::Pid::as_raw).ok(),
            "group": nix::unistd::getpgrp().as_raw(), "umask": umask, "limits": limits, "nice": nice,
            "oom_score_adj": oom.trim(),
        }),
    );
}

fn read(context: &Context, from: &str, input: Vec<u8>) {
    // FNV-1a: short, and enough to tell two prompts apart.
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    context
        .record
        .note("read", json!({ "from": from, "bytes": input.len(), "hash": format!("{hash:016x}") }));
    *context.input.lock().expect("nobody panics with it") = input;
}

fn flood(to: To, bytes: Option<u64>) {
    let piece = vec![b'x'; 64 * 1024];
    let mut left = bytes.unwrap_or(u64::MAX);
    while left > 0 {
        let now = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if !try_write(to, &piece[..now]) {
            return;
        }
        left -= now as u64;
    }
}

fn write(to: To, bytes: &[u8]) {
    try_write(to, bytes);
}

/// False where nobody reads any more.
fn try_write(to: To, bytes: &[u8]) -> bool {
    match to {
        To::Stdout => {
            let mut out = std::io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush()).is_ok()
        }
        To::Stderr => std::io::stderr().lock().write_all(bytes).is_ok(),
    }
}

/// Listens for steps, a line each, and answers each with `ok` or what is wrong with it.
fn control(context: &Arc<Context>, path: &Path) -> Result<()> {
    let listener = UnixListener::bind(path)?;
    let context = Arc::clone(context);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(std::result::Result::ok) {
            let context = Arc::clone(&context);
            std::thread::spawn(move || {
                let Ok(mut answers) = stream.try_clone() else { return };
                for line in BufReader::new(stream).lines().map_while(std::result::Result::ok) {
                    let answer = match script::parse(&line) {
                        Ok(steps) => {
                            // Said before it is done: a step may be the last.
                            let _ = writeln!(answers, "ok");
                            run_steps(&context, &steps);
                            continue;
                        }
                        Err(error) => format!("{error:#}"),
                    };
                    let _ = writeln!(answers, "{answer}");
                }
            });
        }
    });
    Ok(())
}
