//! Every combination of ancestors, variables and bindings that decides differently.

use minder_proto::record::{Process, SessionRecord};
use serde_json::json;

use super::super::Ancestor;
use super::super::harness::Runs;
use super::*;

/// Processes: 100 and so on are harnesses, less is not.
fn process(pid: i32) -> Process {
    Process { pid, start: 7, boot: "this boot".into(), tty: None, ended: None }
}

/// A session with a label, a harness, the pid it is bound to, and its conversations; an ended one begins with `-`.
fn session(label: &str, harness: &str, pid: i32, conversations: &[&str]) -> SessionRecord {
    let at = "2026-11-30T12:00:00Z";
    let bindings: Vec<_> = conversations
        .iter()
        .map(|c| {
            let ended = c.strip_prefix('-');
            let until = ended.map(|_| at);
            json!({"harness": harness, "id": ended.unwrap_or(c), "since": at, "until": until, "why": "startup"})
        })
        .collect();
    let mut record: SessionRecord = serde_json::from_value(json!({
        "id": SessionId::random(), "label": label, "title": label, "dir": "/", "channel": {"kind": "hook"},
        "created": at, "state": "idle", "state_at": at, "state_by": "hook", "last_seq": 1,
        "harness": harness, "bindings": bindings,
    }))
    .unwrap();
    record.process = (pid != 0).then(|| process(pid));
    record
}

fn state() -> State {
    State::of([
        session("alone", "claude", 100, &["-a0", "a"]),
        session("one-of-two", "claude", 200, &["x"]),
        session("two-of-two", "claude", 200, &["-y0", "y"]),
        session("left", "claude", 300, &["-l"]),
        session("went-on", "claude", 300, &["w"]),
        session("detached", "claude", 0, &["d"]),
        session("codex", "codex", 500, &["e"]),
        session("threads-1", "codex", 600, &["t1"]),
        session("threads-2", "codex", 600, &["t2"]),
        started("launched", "secret"),
    ])
}

/// A session that minder started a process for, with this token.
fn started(label: &str, token: &str) -> SessionRecord {
    let mut record = session(label, "codex", 0, &[]);
    let launch = json!({"at": "2026-11-30T12:00:00Z", "token": token::sum(token)});
    record.launch = Some(serde_json::from_value(launch).unwrap());
    record
}

/// Ancestors by pid, nearest first, below the first process of the system: a shell is 9; `claude` and `codex` processes
/// have a letter before; one that has renamed itself has none.
fn ancestry(text: &str) -> Ancestry {
    let chain = text.split_whitespace().chain(["1"]).map(|word| {
        let harness = match word.as_bytes()[0] {
            b'c' => Some("claude"),
            b'x' => Some("codex"),
            _ => None,
        };
        let pid = word.trim_start_matches(['c', 'x']).parse().unwrap();
        let process = process(pid);
        Ancestor {
            process,
            ppid: 1,
            comm: String::new(),
            argv0: String::new(),
            harness,
            runs: Runs::Attended,
            minds: None,
        }
    });
    Ancestry::known(chain.collect())
}

/// `claude=a codex=e`; `-` is a caller that says nothing of itself.
fn caller(text: &str) -> Option<Caller> {
    if text == "-" {
        return None;
    }
    let mut caller = Caller::default();
    for word in text.split_whitespace() {
        let (harness, id) = word.split_once('=').unwrap();
        let (_, name) = caller::HARNESS_VARS.into_iter().find(|(h, _)| *h == harness).unwrap();
        caller.vars.insert(name.to_owned(), id.to_owned());
    }
    Some(caller)
}

fn shown(identity: &Identity, state: &State) -> String {
    match identity {
        Identity::Session { id } => state.session(*id).unwrap().record.label.clone(),
        Identity::Unregistered { harness, harness_id } => format!("?{harness}:{harness_id}"),
        Identity::Operator => "operator".to_owned(),
    }
}

#[test]
fn the_four_rules() {
    let state = state();
    for (ancestors, variables, expected) in [
        // 1. Under a bound harness.
        ("9 c100", "claude=a", "alone"),
        ("9 9 9 c100 9", "claude=a", "alone"),
        ("c100", "claude=a", "alone"),
        ("9 c100", "", "alone"),
        ("9 c100", "-", "alone"),
        // A command that it left in the background before `/clear`.
        ("9 c100", "claude=a0", "alone"),
        // It runs a conversation that nobody has registered.
        ("9 c100", "claude=new", "?claude:new"),
        // It has renamed itself.
        ("9 100", "claude=a", "alone"),
        ("9 100", "-", "alone"),
        // Several conversations in one process.
        ("9 c200", "claude=x", "one-of-two"),
        ("9 c200", "claude=y", "two-of-two"),
        ("9 c200", "claude=y0", "two-of-two"),
        ("9 c200", "", "?claude:"),
        ("9 c200", "-", "?claude:"),
        ("9 c200", "claude=new", "?claude:new"),
        ("9 x600", "codex=t1", "threads-1"),
        ("9 x600", "codex=t2", "threads-2"),
        ("9 x600", "", "?codex:"),
        // Of two only one is live there.
        ("9 c300", "", "went-on"),
        ("9 c300", "claude=w", "went-on"),
        ("9 c300", "claude=l", "left"),
        // I4: names that were inherited from another process are nobody's here.
        ("9 c100", "claude=x", "?claude:"),
        ("9 c100", "claude=d", "?claude:"),
        ("9 c200", "claude=a", "?claude:"),
        // 1 and 3. Under a harness that is bound to nothing, whatever is around it.
        ("9 c700", "claude=new", "?claude:new"),
        ("9 c700", "", "?claude:"),
        ("9 c700", "-", "?claude:"),
        ("9 c700 9 c100", "claude=new", "?claude:new"),
        // I4: all of the outer one's is inherited.
        ("9 c700 9 c100", "claude=a", "?claude:"),
        ("9 c100 9 c200", "claude=x", "?claude:"),
        ("9 c100 9 c200", "claude=a", "alone"),
        ("9 x700 9 c100", "claude=a", "?codex:"),
        ("9 x700 9 c100", "claude=a codex=new", "?codex:new"),
        ("9 x700 9 c100", "-", "?codex:"),
        // Another harness's variable says nothing of this one.
        ("9 x500 9 c100", "claude=a codex=e", "codex"),
        ("9 x500 9 c100", "claude=a", "codex"),
        ("9 c100 9 x500", "claude=a codex=e", "alone"),
        ("9 c100 9 x500", "codex=e", "alone"),
        // A shared server is nobody in particular.
        ("9 x600 9 c100", "claude=a", "?codex:"),
        // 2. No harness above it, or nothing known of it.
        ("9", "claude=a", "alone"),
        ("9", "claude=d", "detached"),
        ("9", "codex=t2", "threads-2"),
        // What ended is not live.
        ("9", "claude=a0", "?claude:a0"),
        // Two that disagree name none; where one of them is new, it is the one that calls.
        ("9", "claude=a codex=e", "?claude:"),
        ("9", "claude=a codex=new", "?codex:new"),
        ("9", "claude=new codex=e", "?claude:new"),
        // 3. Bound to nothing.
        ("9", "claude=new", "?claude:new"),
        ("9", "claude=new codex=newer", "?claude:new"),
        // 4. The person.
        ("9", "", "operator"),
        ("9", "-", "operator"),
        ("9 9 9 9", "", "operator"),
    ] {
        let found = identify(caller(variables).as_ref(), &ancestry(ancestors), &state);
        assert_eq!(shown(&found, &state), expected, "under {ancestors:?} with {variables:?}");
    }
    // Nothing at all is known of the peer.
    for (variables, expected) in
        [("", "operator"), ("-", "operator"), ("claude=a", "alone"), ("claude=n", "?claude:n")]
    {
        let found = identify(caller(variables).as_ref(), &Ancestry::default(), &state);
        assert_eq!(shown(&found, &state), expected, "with {variables:?}");
    }
}

#[test]
fn a_process_of_another_boot_or_time_is_another_process() {
    let state = state();
    for change in [|p: &mut Process| p.boot = "another".into(), |p: &mut Process| p.start += 1] {
        let mut ancestor = Ancestor {
            process: process(100),
            ppid: 1,
            comm: String::new(),
            argv0: String::new(),
            harness: Some("claude"),
            runs: Runs::Attended,
            minds: None,
        };
        change(&mut ancestor.process);
        let found = identify(None, &Ancestry::known(vec![ancestor]), &state);
        assert_eq!(shown(&found, &state), "?claude:");
    }
}

fn known(caller: &Caller, ancestors: &str, state: &State) -> Result<Who, Fault> {
    who(Some(caller), &ancestry(ancestors), state, &Home::at("/nowhere"))
}

#[test]
fn only_the_person_acts_as_somebody() {
    let state = state();
    let id = state.by_label("detached").unwrap();
    let acting = |variables: &str, selector: &str| {
        let mut caller = caller(variables).unwrap();
        caller.acting_as = Some(selector.to_owned());
        caller
    };
    let found = known(&acting("", "detached"), "9", &state).unwrap();
    assert_eq!(found, Who { identity: Identity::Session { id }, by_operator: true });
    assert_eq!((found.party().unwrap(), found.author()), (Party::Session(id), Author::Operator));
    for (selector, kind) in [
        ("nobody-here", Kind::NotFound),
        ("*-of-two", Kind::Ambiguous),
        (".", Kind::Refused),
        ("", Kind::InvalidParams),
    ] {
        assert_eq!(known(&acting("", selector), "9", &state).unwrap_err().kind, kind, "{selector}");
    }
    for (ancestors, variables, what) in [
        ("9 c100", "claude=a", "this is session "),
        ("9 c100", "claude=a", "for a person's shell"),
        ("9", "claude=d", "this is session "),
        ("9 c700", "", "a claude conversation that is not registered"),
        ("9", "codex=new", "a codex conversation that is not registered"),
    ] {
        let fault = known(&acting(variables, "detached"), ancestors, &state).unwrap_err();
        assert_eq!(fault.kind.exit(), minder_proto::error::exit::REFUSED);
        assert!(fault.message.contains(what), "{}", fault.message);
    }
}

#[test]
fn who_is_registered_speaks_and_who_is_not_is_shown_the_way_in() {
    let state = state();
    let person = known(&Caller::default(), "9", &state).unwrap();
    assert_eq!((person.party().unwrap(), person.author()), (Party::Operator, Author::Operator));
    let agent = known(&Caller::default(), "9 c100", &state).unwrap();
    assert_eq!((agent.party().unwrap().session(), agent.author()), (agent.session(), Author::Agent));
    assert!(agent.session().is_some());
    let fault = known(&Caller::default(), "9 c700", &state).unwrap().party().unwrap_err();
    assert_eq!((fault.kind.exit(), fault.hint.as_deref()), (3, Some("minder new")));
}

#[test]
fn who_left_something_in_the_spool_is_known_by_its_variables_alone() {
    let state = state();
    let ready = Some(Stamp::from_millis(1_000));
    let left = |variables: &str, at: i64, ready: Option<Stamp>| {
        let caller = caller(variables);
        who_left(caller.as_ref(), Stamp::from_millis(at), ready, &state, &Home::at("/nowhere"))
            .map(|who| (shown(&who.identity, &state), who.by_operator))
            .map_err(|fault| fault.kind)
    };
    for (variables, at, expected) in [
        ("claude=a", 999, Ok(("alone", false))),
        ("claude=a", 2_000, Ok(("alone", false))),
        ("claude=new", 999, Ok(("?claude:new", false))),
        ("claude=new", 2_000, Ok(("?claude:new", false))),
        ("", 999, Ok(("operator", true))),
        ("-", 999, Ok(("operator", true))),
        ("", 1_000, Err(Kind::Refused)),
        ("-", 2_000, Err(Kind::Refused)),
    ] {
        let expected = expected.map(|(who, by): (&str, bool)| (who.to_owned(), by));
        assert_eq!(left(variables, at, ready), expected, "{variables:?} at {at}");
    }
    // Nobody could be asked before it served.
    assert_eq!(left("", 2_000, None), Ok(("operator".to_owned(), true)));
}

#[test]
fn what_a_turn_runs_speaks_as_its_session() {
    let state = state();
    let session = state.records().find(|r| r.label == "detached").unwrap().id;
    let shim = |minds| Ancestor {
        process: process(8),
        ppid: 1,
        comm: "exe".into(),
        argv0: "minderd".into(),
        harness: None,
        runs: Runs::Attended,
        minds,
    };
    let below = |chain: &str, minds| {
        let mut all: Vec<Ancestor> = ancestry(chain).iter().cloned().collect();
        all.insert(1, shim(minds));
        identify(caller("claude=a").as_ref(), &Ancestry::known(all), &state)
    };
    assert_eq!(below("c100", Some(session)), Identity::Session { id: session });
    // Of a session that is gone, or of none, it says nothing.
    let own = Identity::Session { id: state.records().find(|r| r.label == "alone").unwrap().id };
    assert_eq!(below("c100", Some(SessionId::random())), own);
    assert_eq!(below("c100", None), own);
}

/// O6: what a process was given is inherited by all that it starts, a shared server's threads among them.
#[test]
fn what_minder_gave_to_a_process_speaks_only_where_nothing_nearer_does() {
    let state = state();
    let launched = state.by_label("launched").unwrap();
    let with = |variables: &str, token: Option<&str>| {
        let mut caller = caller(variables).unwrap();
        caller.vars.insert(caller::SESSION_VAR.to_owned(), launched.to_string());
        caller.token = token.map(str::to_owned);
        caller
    };
    for (ancestors, variables, token, expected) in [
        // In a sandbox with a process namespace of its own.
        ("9", "", Some("secret"), "launched"),
        ("9", "", Some("guessed"), "?unknown:"),
        ("9", "", Some(""), "?unknown:"),
        ("9", "", None, "?unknown:"),
        // Its variable says which thread it is.
        ("9", "codex=t2", Some("secret"), "threads-2"),
        ("9", "codex=new", Some("secret"), "?codex:new"),
        ("9 x600", "codex=t1", Some("secret"), "threads-1"),
        ("9 x600", "codex=t2", Some("secret"), "threads-2"),
        ("9 x600", "codex=new", Some("secret"), "?codex:new"),
        ("9 x600", "", Some("secret"), "?codex:"),
        // A harness that one of its tools started.
        ("9 c700", "", Some("secret"), "?claude:"),
        ("9 c100", "claude=a", Some("secret"), "alone"),
    ] {
        let found = identify(Some(&with(variables, token)), &ancestry(ancestors), &state);
        assert_eq!(shown(&found, &state), expected, "under {ancestors:?} with {variables:?} {token:?}");
    }
    let nobody = known(&with("", None), "9", &state).unwrap().party().unwrap_err();
    assert_eq!((nobody.kind.exit(), nobody.hint.as_deref()), (3, Some("minder new")));
}
