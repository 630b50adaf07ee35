//! `setup` from end to end with a stand-in for the harness.

use std::io;
use std::path::PathBuf;

use minder_client::commands::setup::{Adopted, Options, Steps, run};
use minder_client::hooks::Scope;
use minder_client::hooks::probe::RunningAgent;
use minder_client::hooks::service::Service;

use crate::place::{PROGRAM, Place, Ran, ran, script};

/// Steps that note what they were asked.
#[derive(Default)]
struct Noted {
    answer: Option<bool>,
    fail: bool,
    /// A file that somebody makes while the question stands.
    meanwhile: Option<PathBuf>,
    log: Vec<String>,
}

impl Steps for Noted {
    fn ask(&mut self, question: &str) -> io::Result<Option<bool>> {
        self.log.push(format!("ask {question}"));
        if let Some(path) = &self.meanwhile {
            fs_err::create_dir_all(path.parent().unwrap())?;
            fs_err::write(path, "{}")?;
        }
        Ok(self.answer)
    }

    fn adopt(&mut self, agent: &RunningAgent) -> Result<Adopted, String> {
        self.log.push(format!("adopt {} {}", agent.pid, agent.session_id));
        match agent.kind.as_deref() {
            _ if self.fail => Err("no daemon".to_owned()),
            Some("print") => Ok(Adopted::Left("unattended".to_owned())),
            _ if agent.name.is_some() => Ok(Adopted::Known("api".to_owned())),
            _ => Ok(Adopted::Taken("web".to_owned())),
        }
    }

    fn service(&mut self, service: &Service) -> Result<String, String> {
        self.log.push("service".to_owned());
        Ok(service.line().to_owned())
    }

    fn undo_service(&mut self, _: &Service) -> Result<Option<String>, String> {
        self.log.push("undo service".to_owned());
        Ok(None)
    }

    fn test_notice(&mut self) -> Result<String, String> {
        self.log.push("notice".to_owned());
        if self.fail { Err("no daemon".to_owned()) } else { Ok("sent: tmux".to_owned()) }
    }
}

const AGENTS: &str = r#"[{"pid":7,"cwd":"/src/web","kind":"interactive","sessionId":"s1","status":"idle"},
{"pid":8,"cwd":"/src/api","kind":"interactive","sessionId":"s2","status":"busy","name":"api"},
{"pid":9,"cwd":"/src","kind":"print","sessionId":"s3","status":"busy"}]"#;

/// A place with a harness that answers as the real one does, and notes its calls.
fn place(agents: &str) -> Place {
    let place = Place::new();
    let folder = bin(&place);
    let body = format!(
        "echo \"$*\" >>'{0}/calls'\ncase $1 in --version) echo '2.1.332 (Claude Code)';; agents) {agents};; esac",
        folder.display()
    );
    script(&folder.join("claude"), &body);
    place
}

fn bin(place: &Place) -> PathBuf {
    place.home().parent().unwrap().join("bin")
}

fn listing() -> Place {
    place(&format!("echo '{}'", AGENTS.replace('\n', " ")))
}

fn setup(place: &Place, options: &Options, steps: &mut Noted) -> Ran {
    ran(|output| run(options, &place.surroundings, PROGRAM, &Service::NoSystemd, steps, output))
}

fn yes() -> Options {
    Options { yes: true, ..Options::default() }
}

#[test]
fn everything_is_shown_asked_once_and_done() {
    let place = listing();
    let mut steps = Noted { answer: Some(true), ..Noted::default() };
    let ran = setup(&place, &Options::default(), &mut steps);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let settings = place.settings().display().to_string();
    let claude = bin(&place).join("claude").display().to_string();
    let expected_end = format!(
        "change    adds hooks for 11 events to {settings}; nothing else changes
hooks     {settings}: installed
sessions  web taken in (pid 7 in /src/web)
sessions  api is known (pid 8 in /src/api)
sessions  left alone: unattended (pid 9 in /src)
service   no systemd here; none needed: the first command or hook starts the daemon
notice    sent: tmux
for you   start `claude` in any terminal; sessions that run speak from their next prompt
undo      minder setup --undo
"
    );
    assert!(
        ran.out.starts_with(&format!("claude    2.1.332  {claude}\n--- /dev/null\n+++ {settings}\n")),
        "{}",
        ran.out
    );
    assert!(ran.out.ends_with(&expected_end), "{}", ran.out);
    assert_eq!(ran.err, "");
    let log =
        ["ask Change this file as shown?", "adopt 7 s1", "adopt 8 s2", "adopt 9 s3", "service", "notice"];
    assert_eq!(steps.log, log);

    // Again: nothing to change, so nothing to ask.
    let mut steps = Noted::default();
    let ran = setup(&place, &Options::default(), &mut steps);
    assert_eq!(ran.code(), 0);
    assert!(ran.out.contains("already installed"));
    assert_eq!(steps.log, log[1..]);
}

#[test]
fn a_dry_run_changes_nothing_and_asks_the_harness_for_its_version_only() {
    let place = listing();
    fs_err::write(bin(&place).join("calls"), "").unwrap();
    let before: Vec<_> = place.tree().into_keys().collect();
    let mut steps = Noted::default();
    let ran = setup(&place, &Options { dry_run: true, ..Options::default() }, &mut steps);
    assert_eq!(ran.code(), 0);
    assert!(ran.out.contains("+  \"hooks\": {\n"));
    assert_eq!(place.tree().into_keys().collect::<Vec<_>>(), before);
    assert_eq!(fs_err::read_to_string(bin(&place).join("calls")).unwrap(), "--version\n");
    assert_eq!(steps.log, Vec::<String>::new());
}

#[test]
fn no_is_no_and_nobody_to_ask_is_a_usage_error() {
    let place = listing();
    let mut steps = Noted { answer: Some(false), ..Noted::default() };
    let ran = setup(&place, &Options::default(), &mut steps);
    assert_eq!(ran.code(), 1);
    assert!(ran.out.ends_with("setup     nothing changed\n"));

    let mut nobody = Noted::default();
    let ran = setup(&place, &Options::default(), &mut nobody);
    assert_eq!(ran.code(), 64);
    assert!(ran.code.unwrap_err().to_string().contains("--yes"));
    assert!(!place.settings().exists());
    assert_eq!(steps.log.len() + nobody.log.len(), 2, "nothing but the two questions");
}

#[test]
fn undo_takes_all_back_to_the_byte_and_keeps_the_store() {
    let place = listing();
    fs_err::create_dir(place.home().join(".claude")).unwrap();
    fs_err::write(place.settings(), "{\n\t\"hooks\": { }, \"a\": 1\n}").unwrap();
    fs_err::create_dir(&place.surroundings.minder_home).unwrap();
    fs_err::write(place.surroundings.minder_home.join("format"), "minder-store 1").unwrap();
    assert_eq!(setup(&place, &yes(), &mut Noted::default()).code(), 0);
    // Also where the harness is gone meanwhile.
    fs_err::remove_file(bin(&place).join("claude")).unwrap();
    let mut steps = Noted::default();
    let ran = setup(&place, &Options { undo: true, ..yes() }, &mut steps);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(place.bytes(), b"{\n\t\"hooks\": { }, \"a\": 1\n}");
    assert!(place.surroundings.minder_home.join("format").exists());
    assert!(ran.out.contains("as it was before") && ran.out.contains("store: kept"), "{}", ran.out);
    assert_eq!(steps.log, ["undo service"]);

    let ran = setup(&place, &Options { undo: true, ..Options::default() }, &mut Noted::default());
    assert_eq!(ran.code(), 0);
    assert!(ran.out.starts_with("hooks     nothing of minder's in any settings\n"), "{}", ran.out);
}

#[test]
fn undo_asks_too_and_its_dry_run_only_shows() {
    let place = listing();
    setup(&place, &yes(), &mut Noted::default());
    let installed = place.bytes();
    let mut steps = Noted { answer: Some(false), ..Noted::default() };
    assert_eq!(setup(&place, &Options { undo: true, ..Options::default() }, &mut steps).code(), 1);
    let ran = setup(&place, &Options { undo: true, dry_run: true, ..Options::default() }, &mut steps);
    assert!(ran.out.contains("+++ /dev/null\n"));
    assert_eq!(place.bytes(), installed);
    assert_eq!(steps.log, ["ask Change this file as shown?"]);
}

#[test]
fn without_a_harness_it_says_so() {
    let place = Place::new();
    let ran = setup(&place, &yes(), &mut Noted::default());
    assert_eq!(
        (ran.code(), ran.out.as_str()),
        (
            1,
            "setup     no harness found (claude, codex, opencode, pi, gemini, cursor-agent not on PATH); nothing changed\n"
        )
    );
    let named = Options { harnesses: vec!["claude".to_owned()], ..yes() };
    assert_eq!(setup(&place, &named, &mut Noted::default()).code(), 2);
    assert!(!place.settings().exists());

    script(&bin(&place).join("grok"), "exit 9");
    let ran = setup(&place, &yes(), &mut Noted::default());
    assert!(ran.out.starts_with("grok      found; minder has no hooks for it yet\n"), "{}", ran.out);
    for name in ["grok", "vim"] {
        let named = Options { harnesses: vec!["claude".to_owned(), name.to_owned()], ..yes() };
        assert_eq!(setup(&place, &named, &mut Noted::default()).code(), 64, "{name}");
    }
}

#[test]
fn a_harness_that_cannot_list_its_sessions_costs_a_line() {
    for agents in ["exit 1", "echo nonsense"] {
        let place = place(agents);
        let mut steps = Noted::default();
        let ran = setup(&place, &yes(), &mut steps);
        assert_eq!(ran.code(), 0);
        assert!(
            ran.out.contains("sessions  what runs comes in with its next prompt (claude "),
            "{}",
            ran.out
        );
        assert_eq!(steps.log, ["service", "notice"]);
    }
    let place = place("echo '[]'");
    assert!(setup(&place, &yes(), &mut Noted::default()).out.contains("sessions  none runs now\n"));
}

#[test]
fn a_step_that_failed_is_told_and_is_no_success() {
    let place = listing();
    let mut steps = Noted { fail: true, ..Noted::default() };
    let ran = setup(&place, &yes(), &mut steps);
    assert_eq!(ran.code(), 1);
    assert!(
        ran.err.contains("minder: sessions: not taken in: no daemon (pid 7 in /src/web)\n"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("minder: notice: no daemon\n"));
    assert!(ran.out.ends_with("undo      minder setup --undo\n"));
}

#[test]
fn a_harness_older_than_any_that_was_tried_is_not_touched() {
    let place = Place::new();
    script(&bin(&place).join("claude"), "echo '2.1.99 (Claude Code)'");
    let ran = setup(&place, &yes(), &mut Noted::default());
    assert_eq!(ran.code(), 3, "{ran:?}");
    assert!(!place.settings().exists());
    // Nor does it keep another from being set up.
    script(&bin(&place).join("codex"), "echo codex-cli 0.171.0");
    let ran = setup(&place, &yes(), &mut Noted::default());
    assert_eq!(ran.code(), 1, "{ran:?}");
    assert!(ran.err.starts_with("minder: setup: claude 2.1.99 is older than 2.1.197"), "{}", ran.err);
    assert!(!place.settings().exists() && place.file("codex", Scope::User).exists());
}

#[test]
fn settings_that_are_broken_or_switched_off_are_said() {
    let place = listing();
    fs_err::create_dir(place.home().join(".claude")).unwrap();
    fs_err::write(place.settings(), "{").unwrap();
    let mut steps = Noted::default();
    assert_eq!(setup(&place, &yes(), &mut steps).code(), 65);
    assert_eq!(steps.log, Vec::<String>::new());
    fs_err::write(place.settings(), "{\"disableAllHooks\": true,}").unwrap();
    let ran = setup(&place, &yes(), &mut steps);
    assert_eq!(ran.code(), 1);
    let path = place.settings().display().to_string();
    assert!(ran.err.contains(&format!("minder: for you: {path}: `disableAllHooks` is true")), "{}", ran.err);
    assert!(ran.err.contains("Claude Code loads nothing of it\n"), "{}", ran.err);
}

#[test]
fn json_is_one_object() {
    let place = listing();
    let options = Options { json: true, ..yes() };
    let json = setup(&place, &options, &mut Noted::default()).json();
    assert_eq!(json["harnesses"][0]["version"], "2.1.332");
    assert_eq!((&json["changes"][0]["made"], &json["problems"]), (&true.into(), &serde_json::json!([])));
    assert_eq!(
        json["sessions"][0],
        serde_json::json!({"pid": 7, "id": "s1", "label": "web", "result": "taken"})
    );
    assert_eq!(json["notice"], "sent: tmux");
    let undo = Options { undo: true, ..options };
    let json = setup(&place, &undo, &mut Noted::default()).json();
    assert_eq!((&json["undo"], &json["changes"][0]["made"]), (&true.into(), &true.into()));
}

/// A place with a Codex beside that harness, whose configuration is this.
fn with_codex(config: Option<&str>) -> Place {
    let place = listing();
    script(&bin(&place).join("codex"), "echo codex-cli 0.171.0");
    if let Some(config) = config {
        fs_err::create_dir(place.home().join(".codex")).unwrap();
        fs_err::write(place.home().join(".codex/config.toml"), config).unwrap();
    }
    place
}

#[test]
fn several_harnesses_are_asked_about_once_and_all_taken_back() {
    let config = "model = \"x\"\n# end";
    let place = with_codex(Some(config));
    let codex = place.home().join(".codex");
    let before: Vec<_> = place.tree().into_keys().collect();
    let mut steps = Noted { answer: Some(true), ..Noted::default() };
    let with_sandbox = Options { codex_sandbox: true, ..Options::default() };
    let ran = setup(&place, &with_sandbox, &mut steps);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(steps.log[0], "ask Change these 3 files as shown?");
    assert_eq!(steps.log.iter().filter(|line| line.starts_with("ask")).count(), 1);
    let spool = place.surroundings.minder_home.join("spool");
    let hooks = codex.join("hooks.json").display().to_string();
    for line in [
        format!("change    adds hooks for 9 events to {hooks}; nothing else changes\n"),
        "change    lets every command in Codex's sandbox write to minder's spool: what tools say gets out there\n"
            .to_owned(),
        format!("hooks     {hooks}: installed\n"),
        format!("hooks     {}: lets tools speak\n", codex.join("config.toml").display()),
        format!("+writable_roots = [\"{}\"] # minder-hook\n", spool.display()),
        "for you   start `codex` and answer \"Hooks need review\": before that it runs none of them\n"
            .to_owned(),
    ] {
        assert!(ran.out.contains(&line), "{line} in {}", ran.out);
    }
    let again = setup(&place, &Options::default(), &mut Noted::default());
    assert_eq!(again.code(), 0);
    assert!(!again.out.contains("change "), "{}", again.out);

    let mut steps = Noted { answer: Some(true), ..Noted::default() };
    let undone = setup(&place, &Options { undo: true, ..Options::default() }, &mut steps);
    assert_eq!((undone.code(), steps.log[0].as_str()), (0, "ask Change these 3 files as shown?"));
    assert_eq!(fs_err::read_to_string(codex.join("config.toml")).unwrap(), config);
    let calls = bin(&place).join("calls");
    let store = &place.surroundings.minder_home;
    let after: Vec<_> = place.tree().into_keys().filter(|path| *path != calls && path != store).collect();
    assert_eq!(after, before, "nothing else is left");
}

#[test]
fn the_sandbox_of_codex_is_widened_only_where_that_was_asked_for() {
    let config = "sandbox_mode = \"workspace-write\"\n";
    let place = with_codex(Some(config));
    let file = place.home().join(".codex/config.toml");
    let mut steps = Noted { answer: Some(true), ..Noted::default() };
    for options in [Options::default(), yes()] {
        let ran = setup(&place, &options, &mut steps);
        assert_eq!(ran.code(), 0, "{ran:?}");
        assert_eq!(fs_err::read_to_string(&file).unwrap(), config);
        let line =
            "for you   tools in Codex's sandbox cannot speak; `minder setup codex --codex-sandbox` would let";
        assert!(ran.out.contains(line), "{}", ran.out);
    }
    assert_eq!(steps.log[0], "ask Change these 2 files as shown?");
    let looked = setup(&place, &Options { dry_run: true, ..Options::default() }, &mut steps);
    assert!(
        looked.out.contains("cannot speak") && looked.out.contains("writable_roots = ["),
        "{}",
        looked.out
    );

    // Shown and asked about as every file is.
    let asked = Options { codex_sandbox: true, ..Options::default() };
    let mut steps = Noted { answer: Some(false), ..Noted::default() };
    assert_eq!(setup(&place, &asked, &mut steps).code(), 1);
    assert_eq!(steps.log, ["ask Change this file as shown?"]);
    assert_eq!(fs_err::read_to_string(&file).unwrap(), config);
    let ran = setup(&place, &Options { codex_sandbox: true, ..yes() }, &mut Noted::default());
    assert!(!ran.out.contains("cannot speak"), "{}", ran.out);
    assert!(fs_err::read_to_string(&file).unwrap().contains("writable_roots"));
    // The way back needs no more than it did.
    setup(&place, &Options { undo: true, ..yes() }, &mut Noted::default());
    assert_eq!(fs_err::read_to_string(&file).unwrap(), config);
}

#[test]
fn a_file_that_cannot_be_written_keeps_nothing_else_from_being_done() {
    let place = with_codex(None);
    let meanwhile = Some(place.settings());
    let mut steps = Noted { answer: Some(true), meanwhile, ..Noted::default() };
    let ran = setup(&place, &Options::default(), &mut steps);
    assert_eq!(ran.code(), 1, "{ran:?}");
    let path = place.settings().display().to_string();
    assert!(ran.err.starts_with("minder: hooks: ") && ran.err.contains(&path), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1);
    assert_eq!(place.bytes(), b"{}");
    assert!(place.file("codex", Scope::User).exists());
    assert_eq!(steps.log[1..], ["adopt 7 s1", "adopt 8 s2", "adopt 9 s3", "service", "notice"]);
    assert!(ran.out.contains("start `codex`") && !ran.out.contains("start `claude`"), "{}", ran.out);

    // On the way back too.
    setup(&place, &yes(), &mut Noted::default());
    let meanwhile = Some(place.settings());
    let mut steps = Noted { answer: Some(true), meanwhile, ..Noted::default() };
    let ran = setup(&place, &Options { undo: true, ..Options::default() }, &mut steps);
    assert_eq!(ran.code(), 1, "{ran:?}");
    assert!(!place.file("codex", Scope::User).exists());
    assert_eq!(steps.log[1..], ["undo service"]);
}

#[test]
fn one_harness_that_is_named_is_the_only_one() {
    let place = with_codex(None);
    let codex = Options { harnesses: vec!["codex".to_owned(), "codex".to_owned()], ..yes() };
    let ran = setup(&place, &codex, &mut Noted::default());
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert!(!ran.out.contains("claude") && !place.settings().exists(), "{}", ran.out);
    setup(&place, &Options { harnesses: vec!["claude".to_owned()], ..yes() }, &mut Noted::default());
    setup(&place, &Options { undo: true, ..codex }, &mut Noted::default());
    assert!(!place.home().join(".codex").exists() && place.settings().exists());
}

#[test]
fn a_harness_with_broken_settings_keeps_no_other_from_being_set_up() {
    let place = with_codex(Some("[sandbox_workspace_write]\nwritable_roots = 7\n"));
    fs_err::write(place.home().join(".codex/hooks.json"), "{").unwrap();
    let ran = setup(&place, &yes(), &mut Noted::default());
    assert_eq!(ran.code(), 1, "{ran:?}");
    assert!(ran.err.contains("minder: codex: ") && ran.err.contains("hooks.json:1:2: "), "{}", ran.err);
    assert!(place.settings().exists());
    // And what cannot be changed by a program is left to a person, with the words for it.
    fs_err::write(place.home().join(".codex/hooks.json"), "").unwrap();
    let ran = setup(&place, &Options { codex_sandbox: true, ..yes() }, &mut Noted::default());
    assert_eq!(ran.code(), 1);
    assert!(ran.err.contains("[sandbox_workspace_write] writable_roots = [\"/"), "{}", ran.err);
}
