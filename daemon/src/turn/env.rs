//! The environment of a turn's child: built, not inherited. From what the caller sent only the names of a fixed list, of
//! the adapter and of `turn.env_pass` go in; what names a session of somebody else never does; ours are set.

use std::collections::BTreeMap;
use std::path::Path;

use minder_proto::config;
use minder_proto::error::{Fault, Kind};
use minder_proto::id::{SessionId, TurnId};
use minder_proto::layout::Home;

/// What any program is given of its caller's: names, and beginnings that end in `*`.
const ALLOWED: [&str; 12] = [
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "LANG",
    "LC_*",
    "TZ",
    "TERM",
    "TMPDIR",
    "XDG_*",
    "SSH_AUTH_SOCK",
];

/// Variables that adapters need and that hold no secret: their values may be kept.
const NO_SECRETS: [&str; 25] = [
    "ANTHROPIC_MODEL",
    "AWS_CA_BUNDLE",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_REGION",
    "BASH_*",
    "CLAUDE_CODE_DISABLE_*",
    "CLAUDE_CODE_EFFORT_LEVEL",
    "CLAUDE_CODE_ENABLE_*",
    "CLAUDE_CODE_MAX_*",
    "CLAUDE_CODE_SKIP_*",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_TMPDIR",
    "CLAUDE_CODE_USE_*",
    "CLAUDE_CONFIG_DIR",
    "CLOUD_ML_REGION",
    "CODEX_HOME",
    "DISABLE_*",
    "GEMINI_MODEL",
    "GEMINI_SANDBOX",
    "MAX_THINKING_TOKENS",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "PI_*",
    "VERTEX_REGION_*",
];

/// What a program in a terminal of its own is given beside: where the person's screen, editor and pages are.
const TERMINAL: [&str; 9] = [
    "COLORTERM",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "EDITOR",
    "NO_COLOR",
    "NVM_*",
    "PAGER",
    "VISUAL",
    "WAYLAND_DISPLAY",
];

/// What names somebody else's session, turn or place: given to nobody, whatever else allows it.
const OTHERS: [&str; 19] = [
    "MINDER_*",
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_MESSAGING_*",
    "CLAUDE_CODE_SESSION_*",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PID",
    "CLAUDE_PROJECT_DIR",
    "CODEX_SANDBOX*",
    "CODEX_THREAD_ID",
    "CODEX_TOOL_CALL_ID",
    "GEMINI_SESSION_ID",
    "OPENCODE_PID",
    "OPENCODE_SESSION_*",
    "PI_CODING_AGENT",
    "PI_SESSION_*",
    "TMUX",
    "TMUX_PANE",
];

/// Words in the names of variables without which a harness has no login, or does not find its model: keys and the like, and
/// where to go with them.
const NEEDED: [&str; 21] = [
    "ACCOUNT",
    "AUTH",
    "BASE",
    "BEARER",
    "CERT",
    "CREDENTIAL",
    "CREDENTIALS",
    "ENDPOINT",
    "HEADERS",
    "HOST",
    "KEY",
    "ORGANIZATION",
    "PASSPHRASE",
    "PASSWORD",
    "PROFILE",
    "PROJECT",
    "PROXY",
    "SECRET",
    "TOKEN",
    "URI",
    "URL",
];

/// Words at their end that say that it is a number about such a thing.
const NUMBERS: [&str; 3] = ["MS", "TIMEOUT", "TTL"];

/// Where programs are, for a caller who does not say.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Longest file of variables.
const FILE_MAX: u64 = 256 * 1024;

/// True if a name is that of the pattern, or begins with what stands before its `*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

/// True for a variable without which a turn cannot come to anything: the user asked for it, or it is a login or the way to
/// the model. All else has its default.
fn is_needed(name: &str, pass: &[String]) -> bool {
    let words = || name.split('_');
    let number = || words().next_back().is_some_and(|last| NUMBERS.contains(&last));
    pass.iter().any(|p| fits(p, name)) || words().any(|word| NEEDED.contains(&word)) && !number()
}

/// What a child is told of its turn.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// The turn.
    pub turn: TurnId,
    /// The session whose turn it is.
    pub session: Option<SessionId>,
    /// The store, so that a `minder` in it finds this one.
    pub home: &'a Home,
    /// Where this daemon listens, if somebody said so.
    pub socket: Option<&'a str>,
}

/// The environment of a child from its caller's, by the adapter's names and the user's.
pub fn build(
    caller: &BTreeMap<String, String>,
    adapter: &[&str],
    pass: &[String],
    told: &Told<'_>,
) -> Result<Vec<(String, String)>, Fault> {
    let mut built = passed(caller, &[&ALLOWED, adapter], pass, (told.home, told.socket))?;
    // Its limits the child is told by its shim, which owns the clocks.
    built.insert("MINDER_TURN".to_owned(), told.turn.to_string());
    if let Some(session) = told.session {
        built.insert("MINDER_SESSION".to_owned(), session.to_string());
    }
    Ok(built.into_iter().collect())
}

/// The environment of a harness in a terminal of its own. Which session it is whoever starts it says.
pub fn for_terminal(
    caller: &BTreeMap<String, String>,
    adapter: &[&str],
    pass: &[String],
    home: &Home,
    socket: Option<&str>,
) -> Result<BTreeMap<String, String>, Fault> {
    passed(caller, &[&ALLOWED, &TERMINAL, adapter], pass, (home, socket))
}

/// What a child is given of its caller's environment, and where this store and its daemon are.
fn passed(
    caller: &BTreeMap<String, String>,
    lists: &[&[&str]],
    pass: &[String],
    (home, socket): (&Home, Option<&str>),
) -> Result<BTreeMap<String, String>, Fault> {
    let wanted = |name: &str| {
        let mut patterns = lists.iter().copied().flatten();
        patterns.any(|p| fits(p, name)) || pass.iter().any(|p| fits(p, name))
    };
    let mut built = BTreeMap::new();
    for (name, value) in caller {
        if !wanted(name) || OTHERS.iter().any(|p| fits(p, name)) {
            continue;
        }
        if name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Fault::new(Kind::InvalidParams, format!("{name:?} is no variable's name and value")));
        }
        built.insert(name.clone(), value.clone());
    }
    built.entry("PATH".to_owned()).or_insert_with(|| PATH.to_owned());
    built.insert("MINDER_HOME".to_owned(), home.root().to_string_lossy().into_owned());
    if let Some(socket) = socket {
        built.insert("MINDER_SOCKET".to_owned(), socket.to_owned());
    }
    Ok(built)
}

/// What is kept of a caller's environment for turns that no caller starts: the values of what any program is given and of
/// what is known to hold no secret, and of what the adapter or `turn.env_pass` needs beside only the names.
pub fn keep(
    caller: &BTreeMap<String, String>,
    adapter: &[&str],
    pass: &[String],
) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut values, mut names) = (BTreeMap::new(), Vec::new());
    for (name, value) in caller.iter().filter(|(name, _)| !OTHERS.iter().any(|p| fits(p, name))) {
        let by_adapter = adapter.iter().any(|p| fits(p, name));
        let needed = || by_adapter || pass.iter().any(|p| fits(p, name));
        let no_secret = || by_adapter && NO_SECRETS.iter().any(|p| fits(p, name));
        if ALLOWED.iter().any(|p| fits(p, name)) || no_secret() {
            values.insert(name.clone(), value.clone());
        } else if needed() {
            names.push(name.clone());
        }
    }
    (values, names)
}

/// Variables that a turn needs and nobody has.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvError {
    /// They are in neither place.
    #[error("{}: not in turn.env_file, nor in turn.env_from_daemon", .0.join(", "))]
    Missing(Vec<String>),
    /// The file cannot be used.
    #[error("turn.env_file: {0}")]
    File(String),
}

/// Values for these names, for a turn that no caller starts: from `turn.env_file`, or from the daemon where
/// `turn.env_from_daemon` lists them. One that is in neither place and is not needed is left out. Reads the file.
pub fn without_caller(
    names: &[String],
    config: &config::Turn,
    daemon: impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, EnvError> {
    let kept = match &config.env_file {
        Some(path) => from_file(path)?,
        None => BTreeMap::new(),
    };
    let (mut values, mut missing) = (BTreeMap::new(), Vec::new());
    for name in names {
        let passed = || config.env_from_daemon.iter().any(|p| fits(p, name));
        match kept.get(name).cloned().or_else(|| passed().then(|| daemon(name)).flatten()) {
            Some(value) => drop(values.insert(name.clone(), value)),
            None if is_needed(name, &config.env_pass) => missing.push(name.clone()),
            None => {}
        }
    }
    if missing.is_empty() { Ok(values) } else { Err(EnvError::Missing(missing)) }
}

/// `NAME=VALUE` lines; blank ones and those that begin with `#` say nothing.
fn from_file(path: &Path) -> Result<BTreeMap<String, String>, EnvError> {
    use std::os::unix::fs::MetadataExt;
    let bad = |why: String| EnvError::File(format!("{}: {why}", path.display()));
    let found = std::fs::metadata(path).map_err(|e| bad(e.to_string()))?;
    if found.uid() != nix::unistd::geteuid().as_raw() {
        return Err(bad(format!("belongs to uid {}", found.uid())));
    }
    if found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o777;
        return Err(bad(format!("open to others (mode {mode:04o}): chmod 600 it")));
    }
    let bytes = minder_proto::whole::at_most(path, FILE_MAX).map_err(|e| bad(e.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| bad("not UTF-8".to_owned()))?;
    let mut values = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The line itself is a secret, and is not shown.
        let pair = line.split_once('=').filter(|(name, value)| !name.is_empty() && !value.contains('\0'));
        let (name, value) = pair.ok_or_else(|| bad(format!("line {} is not NAME=VALUE", number + 1)))?;
        values.insert(name.trim_end().to_owned(), value.to_owned());
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn built(caller: &[(&str, &str)], adapter: &[&str], pass: &[&str]) -> BTreeMap<String, String> {
        let caller = caller.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let pass: Vec<String> = pass.iter().map(|p| (*p).to_owned()).collect();
        let told = Told { turn: TurnId::now(), session: None, home: &Home::at("/s"), socket: None };
        build(&caller, adapter, &pass, &told).unwrap().into_iter().collect()
    }

    #[test]
    fn only_what_is_listed_goes_in_and_ours_is_set() {
        let caller = [
            ("HOME", "/h"),
            ("LC_ALL", "C"),
            ("AWS_SECRET", "x"),
            ("FOO", "1"),
            ("FOOD", "2"),
            ("ANTHROPIC_API_KEY", "k"),
            ("PATHS", "no"),
            ("LD_PRELOAD", "evil.so"),
        ];
        let made = built(&caller, &["ANTHROPIC_*"], &["FOO"]);
        let names: Vec<&str> = made.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["ANTHROPIC_API_KEY", "FOO", "HOME", "LC_ALL", "MINDER_HOME", "MINDER_TURN", "PATH"]
        );
        assert_eq!(made["PATH"], PATH);
    }

    #[test]
    fn the_session_of_somebody_else_is_never_passed_on() {
        let caller = [
            ("CLAUDECODE", "1"),
            ("CLAUDE_CODE_SESSION_ID", "s"),
            ("CODEX_THREAD_ID", "t"),
            ("MINDER_SESSION", "m"),
            ("MINDER_TURN", "m"),
            ("MINDER_SOCKET", "/elsewhere"),
            ("TMUX_PANE", "%1"),
            ("CLAUDE_CODE_USE_BEDROCK", "1"),
        ];
        let made = built(&caller, &["CLAUDE_CODE_*", "CODEX_*"], &["*"]);
        for (name, value) in &caller[..7] {
            assert_ne!(made.get(*name).map(String::as_str), Some(*value), "{name}");
        }
        assert_eq!(made["CLAUDE_CODE_USE_BEDROCK"], "1");
    }

    #[test]
    fn without_a_caller_a_value_comes_from_the_file_or_from_a_daemon_that_may_give_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("env");
        std::fs::write(&file, "# keys\n\nANTHROPIC_API_KEY=from=file\n").unwrap();
        let config = config::Turn {
            env_file: Some(file.clone()),
            env_from_daemon: vec!["OPENAI_*".to_owned()],
            ..config::Turn::default()
        };
        let daemon = |name: &str| Some(format!("the daemon's {name}"));
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let error = without_caller(&names(&["ANTHROPIC_API_KEY"]), &config, daemon).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let found =
            without_caller(&names(&["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]), &config, daemon).unwrap();
        assert_eq!(found["ANTHROPIC_API_KEY"], "from=file");
        assert_eq!(found["OPENAI_API_KEY"], "the daemon's OPENAI_API_KEY");
        let missing = without_caller(&names(&["GEMINI_API_KEY"]), &config, daemon);
        assert_eq!(missing, Err(EnvError::Missing(vec!["GEMINI_API_KEY".to_owned()])));
        std::fs::write(&file, "secret words\n").unwrap();
        let error = without_caller(&[], &config, daemon).unwrap_err().to_string();
        assert!(error.contains("line 1") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn what_is_no_login_and_no_way_to_the_model_holds_nothing() {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let config = config::Turn { env_pass: vec!["MINE_*".to_owned()], ..config::Turn::default() };
        let optional = [
            "MCP_TOOL_TIMEOUT",
            "ANTHROPIC_SMALL_FAST_MODEL",
            "CLAUDE_CODE_SHELL",
            "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
        ];
        assert_eq!(without_caller(&names(&optional), &config, |_| None), Ok(BTreeMap::new()));
        let needed = [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "HTTPS_PROXY",
            "AWS_SECRET_ACCESS_KEY",
            "MINE_X",
        ];
        let all = names(&[&optional[..], &needed[..]].concat());
        assert_eq!(without_caller(&all, &config, |_| None), Err(EnvError::Missing(names(&needed))));
    }

    #[test]
    fn of_what_a_harness_needs_only_what_is_no_secret_is_kept() {
        let caller =
            [("HOME", "/h"), ("AWS_REGION", "r"), ("AWS_SECRET_ACCESS_KEY", "s"), ("ANTHROPIC_API_KEY", "k")];
        let caller = caller.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
        let (values, names) = keep(&caller, &["AWS_*", "ANTHROPIC_*"], &[]);
        assert_eq!(values.keys().collect::<Vec<_>>(), ["AWS_REGION", "HOME"]);
        assert_eq!(names, ["ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY"]);
    }

    #[test]
    fn a_pattern_ends_where_its_star_is() {
        let adapters = crate::turn::adapter::ALL.iter().flat_map(|a| a.env.iter());
        for pattern in ALLOWED.iter().chain(&TERMINAL).chain(&OTHERS).chain(&NO_SECRETS).chain(adapters) {
            let star = pattern.find('*').unwrap_or(pattern.len() - 1);
            assert_eq!(star, pattern.len() - 1, "{pattern} fits nothing");
        }
    }
}
