//! The script language: how directives in a conversation become the model's next answer.
//!
//! | directive | what the model does |
//! |---|---|
//! | `[[say TEXT]]` | answers TEXT and ends the turn |
//! | `[[sh COMMAND]]` | calls the harness's shell tool |
//! | `[[tool NAME {JSON}]]` | calls any tool |
//! | `[[wait SECONDS]]` | is silent for that long, then goes on with what follows |
//! | `[[drip SECONDS]]` | the same, but streams a word each second |
//! | `[[gate NAME]]` | is silent until the test opens the gate ([`super::Model::open`]) |
//! | `[[hang]]` | never answers |
//! | `[[err STATUS]]` | answers with that HTTP status |
//! | `[[limit SECONDS]]` | refuses as where a plan is used up, until that long from now |
//! | `[[cut]]` | starts an answer and drops the connection |
//!
//! A say, sh, tool, hang, err, limit or cut ends one answer; what follows it is the next one. The newest text from
//! the user's side that holds directives is the script; how many answers came after it says where in it the
//! model stands. So a text that arrives in the middle of a turn takes over, and one that repeats an older
//! script word for word starts it again. A script that is used up gives `DONE`; a newer text without
//! directives, or a conversation without any, is echoed, but a harness's own reminder is not. Inside the JSON of a tool, `((say X))` is a directive
//! for the sub-agent that gets that text.

use serde_json::{Value, json};

/// Who a text of the conversation is from, as far as a script cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    User,
    System,
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// One text of a conversation. A message with several blocks gives several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    pub role: Role,
    pub text: String,
}

/// A conversation without its wire format.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// Oldest first. Each answer of the model is exactly one `Assistant` entry.
    pub texts: Vec<Text>,
    /// Names of the tools that the harness offers.
    pub tools: Vec<String>,
}

impl Conversation {
    /// The texts since the model's last answer: what this request brings.
    pub fn news(&self) -> &[Text] {
        let answered = self.texts.iter().rposition(|t| t.role == Role::Assistant).map_or(0, |i| i + 1);
        &self.texts[answered..]
    }
}

/// One thing the model does.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Say(String),
    Tool { name: String, input: Value },
    Wait(f64),
    Drip(f64),
    Gate(String),
    Hang,
    Error(u16),
    Limit(u64),
    Cut,
}

impl Step {
    fn ends_answer(&self) -> bool {
        !matches!(self, Self::Wait(_) | Self::Drip(_) | Self::Gate(_))
    }
}

/// The steps of the model's next answer.
pub fn next(conversation: &Conversation) -> Vec<Step> {
    let from_user = |t: &Text| matches!(t.role, Role::User | Role::System);
    let texts = &conversation.texts;
    let script = texts.iter().enumerate().rev().filter(|(_, t)| from_user(t)).find_map(|(at, t)| {
        let steps = parse(&t.text, &conversation.tools);
        (!steps.is_empty()).then_some((at, steps))
    });
    if let Some((at, steps)) = script {
        let later = &texts[at + 1..];
        let used = later.iter().filter(|t| t.role == Role::Assistant).count();
        let mut answers = split(steps);
        if used < answers.len() {
            return answers.swap_remove(used);
        }
        if !later.iter().any(|t| t.role == Role::User && !t.text.trim().is_empty()) {
            return vec![Step::Say("DONE".into())];
        }
    }
    let newest = texts.iter().rev().find(|t| t.role == Role::User).map_or("", |t| said(&t.text));
    let head: String = newest.chars().take(300).collect();
    vec![Step::Say(if head.is_empty() { "DONE".into() } else { format!("ECHO: {head}") })]
}

/// What is left of a text without the reminder of a harness that it begins with.
fn said(text: &str) -> &str {
    let text = text.trim();
    if !text.starts_with("<system-reminder>") {
        return text;
    }
    text.rsplit_once("</system-reminder>").map_or("", |(_, after)| after.trim())
}

/// Cuts a script into answers. One that would end in a pause says `DONE` after it.
fn split(steps: Vec<Step>) -> Vec<Vec<Step>> {
    let mut answers = Vec::new();
    let mut answer = Vec::new();
    for step in steps {
        let last = step.ends_answer();
        answer.push(step);
        if last {
            answers.push(std::mem::take(&mut answer));
        }
    }
    if !answer.is_empty() {
        answer.push(Step::Say("DONE".into()));
        answers.push(answer);
    }
    answers
}

/// The directives in a text: those in `[[ ]]`, or if there are none, those in `(( ))`.
fn parse(text: &str, tools: &[String]) -> Vec<Step> {
    let outer = scan(text, "[[", "]]", tools);
    if outer.is_empty() { scan(text, "((", "))", tools) } else { outer }
}

fn scan(text: &str, open: &str, close: &str, tools: &[String]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(open) {
        rest = &rest[start + open.len()..];
        if let Some((step, after)) = directive(rest, close, tools) {
            steps.push(step);
            rest = after;
        }
    }
    steps
}

/// Reads one directive after its opening; gives it and what follows its closing.
fn directive<'a>(text: &'a str, close: &str, tools: &[String]) -> Option<(Step, &'a str)> {
    let word_end = text.find(|c: char| !c.is_ascii_lowercase())?;
    let (word, tail) = text.split_at(word_end);
    if word == "tool" {
        return tool(tail, close);
    }
    let end = tail.find(close)?;
    let (argument, after) = (tail[..end].trim(), &tail[end + close.len()..]);
    let step = match word {
        "say" => Step::Say(argument.into()),
        "sh" => shell(argument, tools),
        "wait" => Step::Wait(argument.parse().ok()?),
        "drip" => Step::Drip(argument.parse().ok()?),
        "gate" => Step::Gate(argument.into()),
        "hang" => Step::Hang,
        "err" => Step::Error(argument.parse().ok()?),
        "limit" => Step::Limit(argument.parse().ok()?),
        "cut" => Step::Cut,
        _ => return None,
    };
    Some((step, after))
}

/// `NAME {JSON}` and the closing. The JSON is read as JSON, so it may hold the closing itself.
fn tool<'a>(text: &'a str, close: &str) -> Option<(Step, &'a str)> {
    let text = text.trim_start();
    let name_end = text.find(|c: char| c.is_whitespace() || c == ']' || c == ')')?;
    let (name, tail) = text.split_at(name_end);
    let mut values = serde_json::Deserializer::from_str(tail).into_iter::<Value>();
    let (input, after) = match values.next() {
        Some(Ok(value @ Value::Object(_))) => (value, &tail[values.byte_offset()..]),
        _ => (json!({}), tail),
    };
    let after = after.trim_start().strip_prefix(close)?;
    Some((Step::Tool { name: name.into(), input }, after))
}

/// The shell tools that harnesses are known to offer, and how each takes its command.
fn shell(command: &str, tools: &[String]) -> Step {
    type Input = fn(&str) -> Value;
    const KNOWN: [(&str, Input); 3] = [
        ("Bash", |c| json!({"command": c, "description": "scripted"})),
        ("bash", |c| json!({"command": c, "description": "scripted"})),
        ("exec_command", |c| json!({"cmd": c})),
    ];
    for (name, input) in KNOWN {
        if tools.iter().any(|t| t == name) {
            return Step::Tool { name: name.into(), input: input(command) };
        }
    }
    Step::Say(format!("no shell tool is offered for: {command}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(texts: &[(Role, &str)]) -> Conversation {
        let texts = texts.iter().map(|(role, text)| Text { role: *role, text: (*text).into() }).collect();
        Conversation { texts, tools: vec!["Bash".into(), "Agent".into()] }
    }

    fn say(text: &str) -> Vec<Step> {
        vec![Step::Say(text.into())]
    }

    fn bash(command: &str) -> Step {
        shell(command, &["Bash".into()])
    }

    use Role::{Assistant, System, Tool, User};

    #[test]
    fn a_script_is_played_answer_by_answer() {
        let prompt = "do it [[wait 0.5]][[sh echo hi]] then [[say over]]";
        let mut texts = vec![(User, prompt)];
        assert_eq!(next(&conversation(&texts)), [Step::Wait(0.5), bash("echo hi")]);
        texts.extend([(Assistant, ""), (Tool, "hi")]);
        assert_eq!(next(&conversation(&texts)), say("over"));
        texts.push((Assistant, "over"));
        assert_eq!(next(&conversation(&texts)), say("DONE"));
    }

    #[test]
    fn the_newest_text_with_directives_takes_over_and_plain_text_is_echoed() {
        let mut texts = vec![(User, "[[sh echo a]][[say first]]"), (Assistant, ""), (Tool, "a")];
        texts.push((User, "a message: [[say got-it]]"));
        assert_eq!(next(&conversation(&texts)), say("got-it"));
        texts.push((Assistant, "got-it"));
        assert_eq!(next(&conversation(&texts)), say("DONE"));
        texts.push((User, "hello"));
        assert_eq!(next(&conversation(&texts)), say("ECHO: hello"));
    }

    #[test]
    fn a_plain_text_within_a_turn_does_not_end_its_script() {
        let texts = [(User, "[[sh a]][[say end]]"), (Assistant, ""), (Tool, ""), (User, "by the way")];
        assert_eq!(next(&conversation(&texts)), say("end"));
    }

    #[test]
    fn a_reminder_steers_but_is_not_echoed() {
        let reminder = "<system-reminder>\nnote <system-reminder>x</system-reminder>\n</system-reminder>\n";
        assert_eq!(next(&conversation(&[(User, reminder)])), say("DONE"));
        assert_eq!(next(&conversation(&[(User, &format!("{reminder}hello"))])), say("ECHO: hello"));
        let steering = "<system-reminder>[[say heard]]</system-reminder>";
        assert_eq!(next(&conversation(&[(User, steering)])), say("heard"));
    }

    #[test]
    fn context_in_the_system_role_can_steer() {
        let texts = [(User, "hello"), (System, "context: [[say from-hook]]")];
        assert_eq!(next(&conversation(&texts)), say("from-hook"));
    }

    #[test]
    fn a_tool_input_may_hold_brackets_and_inner_directives() {
        let prompt = r#"[[tool Agent {"list":[["a"]],"prompt":"((say inner))"}]] [[say b]]"#;
        let steps = parse(prompt, &[]);
        let input = json!({"list": [["a"]], "prompt": "((say inner))"});
        assert_eq!(steps, [Step::Tool { name: "Agent".into(), input }, Step::Say("b".into())]);
        assert_eq!(next(&conversation(&[(User, "((say inner))")])), say("inner"));
    }

    #[test]
    fn what_is_no_directive_is_left_alone() {
        for text in ["[[ -f x ]]", "[[saying]]", "[[wait soon]]", "[[say never closed", "[[]]"] {
            assert_eq!(parse(text, &[]), [], "{text}");
        }
    }

    #[test]
    fn a_pause_at_the_end_is_followed_by_done() {
        let steps = next(&conversation(&[(User, "[[gate go]]")]));
        assert_eq!(steps, [Step::Gate("go".into()), Step::Say("DONE".into())]);
    }

    #[test]
    fn without_a_shell_tool_the_model_says_so() {
        let mut conversation = conversation(&[(User, "[[sh ls]]")]);
        conversation.tools = vec!["Read".into()];
        assert_eq!(next(&conversation), say("no shell tool is offered for: ls"));
    }
}
