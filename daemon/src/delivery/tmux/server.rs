//! tmux commands about one pane, on the user's own server: nothing is made there, nothing is ended, and no server is
//! started. Text goes in on standard input, nothing passes through a shell. What is typed goes in by one command that
//! the server carries out only if the pane is as it was looked at.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::screen::Screen;

/// How long one command may take.
const LIMIT: Duration = Duration::from_secs(5);
/// Most bytes that a command may say.
const SAID_MAX: u64 = 4 * 1024 * 1024;
/// The first version whose commands are relied on.
const OLDEST: (u32, u32) = (3, 0);

/// What a pane is asked for, in the order in which it is told.
const FIELDS: &str = "pane #{pane_id} #{pane_pid} #{pane_tty} #{pane_dead} #{pane_in_mode} #{pane_input_off} \
    #{pane_synchronized} #{cursor_x} #{cursor_y} #{cursor_flag} #{version} #{session_activity}";
/// And each client: when it had a key last, whether it has keys at all, and the pane that they go to.
const CLIENT: &str = "client #{client_activity} #{client_control_mode} #{client_readonly} #{pane_id}";

/// A pane of a tmux server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pane {
    /// The server's socket.
    pub socket: String,
    /// The pane's id.
    pub id: String,
}

/// A pane as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The process that it was started with.
    pub pid: i32,
    /// Its terminal, `/dev/pts/3`.
    pub tty: String,
    /// That process has ended.
    pub dead: bool,
    /// It shows its history, or a menu of tmux's.
    pub in_mode: bool,
    /// It takes no keys, or others get them too.
    pub shut: bool,
    /// tmux's version.
    pub version: String,
    /// When a person's key went to it last, in seconds of the wall clock.
    pub key_at: Option<i64>,
    /// The second of the last key of anybody in the session that the pane is in, as tmux told it.
    pub touched: u64,
    /// What it shows.
    pub screen: Screen,
}

/// Why nothing was learnt or done.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// There is no such server or pane, or the server does not answer.
    #[error("{0}")]
    Gone(String),
    /// tmux is older than what is relied on.
    #[error("tmux {0} is too old")]
    TooOld(String),
}

impl Shown {
    /// What tmux said, in the order of [`FIELDS`], [`CLIENT`], the screen.
    fn parse(said: &str, pane: &str) -> Option<Self> {
        let (head, mut rest) = said.split_once('\n')?;
        let fields: Vec<&str> = head.split(' ').collect();
        let ["pane", id, pid, tty, dead, mode, off, synchronized, x, y, cursor, version, touched] =
            fields[..]
        else {
            return None;
        };
        if id != pane {
            return None;
        }
        let mut key_at = None;
        // The screen begins where no client stands any more: its first line may look like one, so their number is told.
        while let Some(line) = rest.strip_prefix("client ") {
            let (client, behind) = line.split_once('\n')?;
            rest = behind;
            if let [at, "0", "0", id] = client.split(' ').collect::<Vec<_>>()[..]
                && id == pane
            {
                key_at = key_at.max(at.parse().ok());
            }
        }
        let screen = rest.strip_prefix("screen\n")?;
        let set = |flag: &str| !matches!(flag, "" | "0");
        Some(Self {
            pid: pid.parse().ok()?,
            tty: tty.to_owned(),
            dead: set(dead),
            in_mode: set(mode),
            shut: set(off) || set(synchronized),
            version: version.to_owned(),
            key_at,
            touched: touched.parse().ok()?,
            screen: Screen::parse(screen, (x.parse().ok()?, y.parse().ok()?), cursor == "1"),
        })
    }

    /// What has to hold for text or a key to go in, in tmux's own terms: all of this as it was looked at. A key that a
    /// person pressed since then is known to tmux before the harness has shown it: where somebody's last key is some
    /// seconds old, as it has to be, the next one is in another second.
    fn unmoved(&self) -> String {
        let (x, y) = self.screen.cursor;
        format!(
            "#{{==:#{{pane_pid}} #{{pane_dead}} #{{pane_in_mode}} #{{pane_input_off}} #{{pane_synchronized}} \
             #{{cursor_x}} #{{cursor_y}} #{{cursor_flag}} #{{session_activity}},{} 0 0 0 0 {x} {y} {} {}}}",
            self.pid,
            u8::from(self.screen.cursor_shows),
            self.touched
        )
    }
}

impl Pane {
    /// What it is and shows.
    pub async fn look(&self) -> Result<Shown, Failed> {
        let target = ["-t", &self.id];
        let mut args = vec!["display-message", "-p"];
        args.extend(target);
        args.extend([FIELDS, ";", "list-clients", "-F", CLIENT, ";", "display-message", "-p", "screen", ";"]);
        args.extend(["capture-pane", "-p", "-e"]);
        args.extend(target);
        let said = self.run(&args, b"").await?;
        let shown = Shown::parse(&said, &self.id)
            .ok_or_else(|| Failed::Gone(format!("tmux shows no pane {}", self.id)))?;
        if is_too_old(&shown.version) {
            return Err(Failed::TooOld(shown.version));
        }
        Ok(shown)
    }

    /// Pastes a text, if the pane is as it was looked at; false if it is not.
    pub async fn paste(&self, text: &str, seen: &Shown, buffer: &str) -> Result<bool, Failed> {
        let paste = format!("paste-buffer -d -p -r -b {buffer} -t {} ; display-message -p went", self.id);
        let leave = format!("delete-buffer -b {buffer} ; display-message -p moved");
        let unmoved = seen.unmoved();
        let args = [
            "load-buffer",
            "-b",
            buffer,
            "-",
            ";",
            "if-shell",
            "-F",
            "-t",
            &self.id,
            &unmoved,
            &paste,
            &leave,
        ];
        let went = self.run(&args, text.as_bytes()).await;
        if went.is_err() {
            // It may lie there still; if not, there is none.
            let _ = self.run(&["delete-buffer", "-b", buffer], b"").await;
        }
        Ok(went?.trim() == "went")
    }

    /// Presses Enter, if the pane is as it was looked at and shows a word of letters and digits still; false if not.
    pub async fn enter(&self, seen: &Shown, shows: &str) -> Result<bool, Failed> {
        let unmoved = format!("#{{&&:{},#{{!=:#{{C:{shows}}},0}}}}", seen.unmoved());
        let press = format!("send-keys -t {} Enter ; display-message -p went", self.id);
        let args = ["if-shell", "-F", "-t", &self.id, &unmoved, &press, "display-message -p moved"];
        Ok(self.run(&args, b"").await?.trim() == "went")
    }

    async fn run(&self, args: &[&str], input: &[u8]) -> Result<String, Failed> {
        let gone = |why: String| Failed::Gone(why);
        let mut command = Command::new("tmux");
        command
            .args(["-u", "-S", &self.socket])
            .args(args)
            .env_clear()
            .envs(["HOME", "PATH"].iter().filter_map(|name| Some((*name, std::env::var_os(name)?))))
            .env("LC_ALL", "C.UTF-8")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| gone(format!("tmux: {error}")))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let run = async {
            if let Some(mut stdin) = stdin {
                // One that does not read it says so by its exit.
                let _ = stdin.write_all(input).await;
            }
            let mut said = Vec::new();
            if let Some(stdout) = stdout {
                use tokio::io::AsyncReadExt;
                stdout
                    .take(SAID_MAX)
                    .read_to_end(&mut said)
                    .await
                    .map_err(|error| gone(error.to_string()))?;
            }
            let status = child.wait().await.map_err(|error| gone(error.to_string()))?;
            if status.success() {
                Ok(String::from_utf8_lossy(&said).into_owned())
            } else {
                Err(gone(format!("tmux does not know {} on {}", self.id, self.socket)))
            }
        };
        match tokio::time::timeout(LIMIT, run).await {
            Ok(result) => result,
            Err(_) => Err(gone(format!("tmux on {} does not answer", self.socket))),
        }
    }
}

/// True if a version is known to be too old. One that has another form is somebody's own, and newer than that.
fn is_too_old(version: &str) -> bool {
    let number = |text: &str| text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().ok();
    let Some((major, minor)) = version.split_once('.') else { return false };
    number(major).zip(number(minor)).is_some_and(|version| version < OLDEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tmux_says_is_read_and_what_looks_like_it_on_the_screen_is_not() {
        let said = "pane %3 41 /dev/pts/5 0 0 0 0 2 1 0 3.3a 77\n\
            client 100 0 0 %3\nclient 900 1 0 %3\nclient 901 0 1 %3\nclient 902 0 0 %4\nclient 101 0 0 %3\n\
            screen\nclient 999 0 0 %3\n\u{276f} x\n";
        let shown = Shown::parse(said, "%3").unwrap();
        assert_eq!((shown.pid, shown.tty.as_str(), shown.key_at), (41, "/dev/pts/5", Some(101)));
        assert_eq!((shown.dead, shown.in_mode, shown.shut), (false, false, false));
        assert_eq!((shown.screen.row(0), shown.screen.cursor), ("client 999 0 0 %3", (2, 1)));
        assert!(shown.unmoved().ends_with(",41 0 0 0 0 2 1 0 77}"), "{}", shown.unmoved());
        for (said, what) in [
            ("pane %4 41 /dev/pts/5 0 0 0 0 2 1 0 3.3a 77\nscreen\n", "another pane"),
            ("pane            3.3a \nscreen\n", "no pane"),
            ("pane %3 41 /dev/pts/5 0 0 0 0 2 1 0 3.3a 77\n", "no screen"),
            ("", "nothing"),
        ] {
            assert_eq!(Shown::parse(said, "%3"), None, "{what}");
        }
        for flags in ["1 0 0 0", "0 1 0 0", "0 0 1 0", "0 0 0 1"] {
            let shown = Shown::parse(&format!("pane %3 41 /dev/pts/5 {flags} 2 1 1 3.3a 77\nscreen\n"), "%3")
                .unwrap();
            assert!(shown.dead || shown.in_mode || shown.shut);
        }
    }

    #[test]
    fn what_is_older_than_what_is_relied_on_is_too_old() {
        for (version, old) in [
            ("2.9a", true),
            ("1.8", true),
            ("3.0", false),
            ("3.3a", false),
            ("next-3.7", false),
            ("master", false),
        ] {
            assert_eq!(is_too_old(version), old, "{version}");
        }
    }
}
