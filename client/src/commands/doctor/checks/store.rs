//! The store and the configuration: who may read them, their format, what was set aside, what waits.

use minder_proto::STORE_FORMAT;

use super::super::facts::{Daemon, Facts};
use super::super::finding::Finding;

/// Most names in one line.
const NAMED: usize = 3;

/// Whether the store is its user's alone.
pub fn permissions(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "permissions";
    let (modes, store) = (&facts.modes, facts.store.display().to_string());
    let mut found = Vec::new();
    if let Some(file) = &modes.foreign {
        let text = format!("{} is somebody else's", file.display());
        found.push(Finding::wrong(CHECK, text).told(format!("sudo chown -R \"$(id -u)\" '{store}'")));
    }
    if let Some(file) = &modes.first_wide {
        let more = match modes.wide {
            0 | 1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let text = format!("others may use {}{more}", file.display());
        found.push(Finding::wrong(CHECK, text).fixed_by(&["chmod", "-R", "go=", &store]));
    }
    if let Some(file) = &facts.config.open_env_file {
        let file = file.display().to_string();
        let text = format!("others may read {file}, which has your variables");
        found.push(Finding::wrong(CHECK, text).fixed_by(&["chmod", "go=", &file]));
    }
    if found.is_empty() {
        found.push(Finding::ok(CHECK, "the store is yours alone"));
    }
    found
}

/// Whether the configuration can be used.
pub fn config(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "config";
    let config = &facts.config;
    if let Some(why) = &config.error {
        return vec![Finding::wrong(CHECK, why).told("mend that line")];
    }
    let mut found = vec![Finding::ok(CHECK, config.file.display().to_string())];
    if config.not_durable {
        let text = "store.durability is none: a power cut may lose what was told";
        found.push(Finding::note("durability", text));
    }
    found
}

/// Whether the store is this build's, whole, and nothing waits in vain.
pub fn files(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "store";
    let files = &facts.files;
    let store = facts.store.display();
    if !files.exists {
        return vec![Finding::ok(CHECK, format!("{store}: not made yet"))];
    }
    let mut found = Vec::new();
    if let Some(format) = &files.format {
        let text = format!("{store} says {format:?}, this build writes {STORE_FORMAT:?}");
        found.push(Finding::wrong(CHECK, text).told("upgrade minder"));
    }
    if files.repair_needed {
        found.push(
            Finding::wrong(CHECK, "a repair was begun and not ended")
                .told("minder daemon stop && minder store repair"),
        );
    }
    if files.spooled > 0 && matches!(facts.daemon, Daemon::Absent) {
        let text = format!("{} in the spool, until a daemon runs", requests(files.spooled));
        found.push(Finding::wrong(CHECK, text).fixed_by(&["minder", "daemon", "start"]));
    }
    if found.is_empty() {
        found.push(Finding::ok(CHECK, store.to_string()));
    }
    found
}

fn requests(many: usize) -> String {
    if many == 1 { "1 request waits".to_owned() } else { format!("{many} requests wait") }
}

/// What could not be read and was set aside.
pub fn quarantine(facts: &Facts) -> Vec<Finding> {
    let names = &facts.files.quarantined;
    if names.is_empty() {
        return Vec::new();
    }
    let mut text = format!("set aside as unreadable: {}", names[..names.len().min(NAMED)].join(", "));
    if names.len() > NAMED {
        text.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    let folder = facts.store.join("quarantine");
    let told =
        format!("{}: the .why beside each says what it was; remove what you do not need", folder.display());
    vec![Finding::wrong("quarantine", text).told(told)]
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Level::{Note, Ok, Wrong};
    use super::super::super::samples::{check, facts};
    use super::*;

    #[test]
    fn what_others_may_use_is_closed() {
        let mut one = facts();
        check(&permissions(&one), &[(Ok, "yours alone", None)]);
        one.modes.wide = 3;
        one.modes.first_wide = Some("/s/sessions".into());
        one.modes.foreign = Some("/s/journal".into());
        one.config.open_env_file = Some("/c/env".into());
        check(
            &permissions(&one),
            &[
                (Wrong, "/s/journal is somebody else's", Some("sudo chown -R")),
                (Wrong, "/s/sessions and 2 more", Some("chmod -R go= /s")),
                (Wrong, "/c/env", Some("chmod go= /c/env")),
            ],
        );
    }

    #[test]
    fn a_configuration_and_its_durability() {
        let mut one = facts();
        check(&config(&one), &[(Ok, "/c/config.toml", None)]);
        one.config.not_durable = true;
        check(&config(&one), &[(Ok, "", None), (Note, "store.durability is none", None)]);
        one.config.error = Some("/c/config.toml:3: no such key".into());
        check(&config(&one), &[(Wrong, ":3: no such key", Some("mend that line"))]);
    }

    #[test]
    fn what_waits_and_what_is_not_whole() {
        let mut one = facts();
        check(&files(&one), &[(Ok, "/s", None)]);
        one.files.spooled = 2;
        check(&files(&one), &[(Ok, "/s", None)]);
        one.daemon = Daemon::Absent;
        check(&files(&one), &[(Wrong, "2 requests wait in the spool", Some("minder daemon start"))]);
        one.files.format = Some("minder-store 9".into());
        one.files.repair_needed = true;
        one.files.spooled = 0;
        check(
            &files(&one),
            &[(Wrong, "minder-store 9", Some("upgrade")), (Wrong, "repair", Some("store repair"))],
        );
        one.files.exists = false;
        check(&files(&one), &[(Ok, "not made yet", None)]);
    }

    #[test]
    fn what_was_set_aside_is_named() {
        let mut one = facts();
        check(&quarantine(&one), &[]);
        one.files.quarantined = ["a", "b", "c", "d"].map(str::to_owned).into();
        check(&quarantine(&one), &[(Wrong, "a, b, c and 1 more", Some("/s/quarantine"))]);
    }
}
