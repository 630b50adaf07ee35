//! The harnesses: whether their hooks are there and run, and whether their tools can speak.

use super::super::facts::{Facts, Harness, Hooks};
use super::super::finding::Finding;

/// Hooks that are there and dead, or of another version.
pub fn hooks(facts: &Facts) -> Vec<Finding> {
    if facts.harnesses.is_empty() {
        return vec![Finding::note("hooks", "no harness was found on PATH")];
    }
    facts.harnesses.iter().flat_map(of).collect()
}

fn of(one: &Harness) -> Vec<Finding> {
    const CHECK: &str = "hooks";
    let (name, file) = (one.name, one.file.display());
    let mut found = Vec::new();
    if let Some(version) = &one.too_old {
        found.push(
            Finding::wrong(CHECK, format!("{name}: {version} is older than any whose hooks were tried"))
                .told(format!("update {}", one.title)),
        );
    }
    let setup = ["minder", "setup", name];
    let install = ["minder", "hooks", "install", name];
    match &one.hooks {
        Hooks::Absent => found.push(Finding::note(CHECK, format!("{name}: not set up")).by_hand(&setup)),
        Hooks::OnlyNotifies(config) => {
            let text = format!(
                "{name}: `notify` in {} tells of ended turns alone, of no question and no permission",
                config.display()
            );
            found.push(Finding::wrong(CHECK, text).by_hand(&setup));
        }
        Hooks::Broken(why) => {
            found.push(Finding::wrong(CHECK, format!("{name}: {why}")).told("mend that file by hand"));
        }
        Hooks::There { missing, outdated, surplus, gone, unreviewed, hindrances } => {
            let parts = [
                ("missing: ", missing),
                ("of another version or place: ", outdated),
                ("not where it belongs: ", surplus),
                ("runs what is not there: ", gone),
            ];
            let parts: Vec<_> = parts.iter().filter(|(_, names)| !names.is_empty()).collect();
            if !parts.is_empty() {
                let parts: Vec<_> =
                    parts.iter().map(|(what, names)| format!("{what}{}", names.join(", "))).collect();
                let text = format!("{name}: {file}: {}", parts.join("; "));
                found.push(Finding::wrong(CHECK, text).fixed_by(&install));
            }
            for line in hindrances {
                found.push(
                    Finding::wrong(CHECK, format!("{name}: {file}: {line}")).told("mend that file by hand"),
                );
            }
            if !unreviewed.is_empty() {
                let text = format!("{name}: not reviewed yet, so not run: {}", unreviewed.join(", "));
                found.push(Finding::wrong(CHECK, text).told(one.then));
            }
            if found.is_empty() {
                found.push(Finding::ok(CHECK, format!("{name}: {file}")));
            }
        }
    }
    found
}

/// Codex's sandbox, which a person may keep shut.
pub fn sandbox(facts: &Facts) -> Vec<Finding> {
    let muted = facts.harnesses.iter().filter(|one| one.muted && matches!(one.hooks, Hooks::There { .. }));
    let note = |one: &Harness| {
        let text = format!("{}: what its tools say from inside its sandbox is not heard", one.name);
        Finding::note("sandbox", text).by_hand(&["minder", "setup", one.name, "--codex-sandbox"])
    };
    muted.map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Level::{Note, Ok, Wrong};
    use super::super::super::samples::{check, facts, harness, there};
    use super::*;

    fn with(hooks: Hooks) -> Facts {
        Facts { harnesses: vec![Harness { hooks, ..harness("codex") }], ..facts() }
    }

    #[test]
    fn h9_installed_and_dead_is_wrong_and_says_which() {
        check(&hooks(&with(there())), &[(Ok, "codex: /h/hooks.json", None)]);
        check(&hooks(&with(Hooks::Absent)), &[(Note, "codex: not set up", Some("minder setup codex"))]);
        check(
            &hooks(&with(Hooks::OnlyNotifies("/h/config.toml".into()))),
            &[(Wrong, "`notify` in /h/config.toml tells of ended turns alone", Some("minder setup codex"))],
        );
        let Hooks::There { hindrances, .. } = there() else { panic!() };
        let wrong_name = Hooks::There {
            missing: vec!["Stop".into()],
            surplus: vec!["Stopp".into()],
            outdated: vec![],
            gone: vec![],
            unreviewed: vec!["Interrupt".into()],
            hindrances,
        };
        check(
            &hooks(&with(wrong_name)),
            &[
                (Wrong, "missing: Stop; not where it belongs: Stopp", Some("minder hooks install codex")),
                (Wrong, "not reviewed yet, so not run: Interrupt", Some("Hooks need review")),
            ],
        );
        check(
            &hooks(&with(Hooks::Broken("/h/hooks.json:3:1: no value".into()))),
            &[(Wrong, ":3:1", Some("by hand"))],
        );
        check(&hooks(&Facts { harnesses: vec![], ..facts() }), &[(Note, "no harness", None)]);
    }

    #[test]
    fn a_shut_sandbox_is_a_note_where_the_hooks_are() {
        let mut one = with(there());
        check(&sandbox(&one), &[]);
        one.harnesses[0].muted = true;
        check(&sandbox(&one), &[(Note, "is not heard", Some("minder setup codex --codex-sandbox"))]);
        one.harnesses[0].hooks = Hooks::Absent;
        check(&sandbox(&one), &[]);
    }
}
