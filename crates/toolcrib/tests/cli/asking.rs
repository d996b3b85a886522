//! What servers ask while they work, put to the person at a real terminal; and what is declared
//! where nobody is there to answer.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_testkit::{dialogue::Dialogue, fake::Fake, process::still_there};

use crate::play::{Crib, scenario};

/// A server whose tool `alpha` asks this of the client before it answers.
fn asking(era: &str, params: &Value) -> Fake {
    let steps = if era == "modern" {
        json!([
            {"expect": ["tools/call", "resources/read", "prompts/get"], "when": {"params": {"inputResponses": {}}}, "repeat": true},
            {"default": true},
            {"expect": ["tools/call", "resources/read", "prompts/get"]},
            {"reply": {"resultType": "input_required", "requestState": "so far",
                "inputRequests": {"first": {"method": "elicitation/create", "params": params}}}},
        ])
    } else {
        json!([
            {"expect": ["tools/call", "resources/read", "prompts/get"]},
            {"request": {"id": "q1", "method": "elicitation/create", "params": params}}, {"sleep_ms": 2_500}, {"default": true},
        ])
    };
    Fake::scripted(&scenario(&json!({"era": era, "steps": steps,
        "resources": [{"uri": "notes://a", "name": "a"}], "prompts": [{"name": "p"}]})))
}

/// What the server was answered.
fn answered(era: &str, fake: &Fake) -> Value {
    let log = fake.log();
    if era == "modern" {
        let methods = ["tools/call", "resources/read", "prompts/get"];
        let all = methods.iter().flat_map(|method| log.requests(method)).collect::<Vec<_>>();
        let mut last = all.iter().map(|entry| &entry["params"]["inputResponses"]["first"]);
        return last.rfind(|answer| !answer.is_null()).unwrap().clone();
    }
    let answers = log.answers();
    let answer = answers.iter().find(|answer| answer["id"] == "q1").expect("an answer");
    answer.get("result").or_else(|| answer.get("error")).unwrap().clone()
}

fn form() -> Value {
    json!({"mode": "form", "message": "Who are\u{1b}[8m you?", "requestedSchema": {"type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name", "description": "As on the door", "minLength": 2},
            "age": {"type": "integer", "minimum": 0},
            "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
            "days": {"type": "array", "items": {"type": "string", "enum": ["mon", "tue", "wed"]}, "default": ["tue"]},
            "news": {"type": "boolean", "default": false},
        },
        "required": ["name", "colour", "news"]}})
}

/// The transcript without the colours and line breaks of a terminal.
fn plain(said: &str) -> String {
    let mut out = String::new();
    let mut rest = said;
    while let Some(at) = rest.find('\u{1b}') {
        out.push_str(&rest[..at]);
        let after = rest[at + 1..].trim_start_matches('[');
        let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |end| end + 1);
        rest = &after[end..];
    }
    (out + rest).replace('\r', "")
}

fn start(fake: &Fake) -> (Crib<'_>, Dialogue) {
    let mut crib = Crib::of(fake);
    crib.world.env("NO_COLOR", "1").env("TERM", "dumb");
    let dialogue = crib.talk_at_terminal(&["call", "s.alpha"]);
    (crib, dialogue)
}

/// Every field is shown with all the server says of it; what does not fit is asked again; nothing is
/// sent before it was seen as a whole.
#[test]
fn a_form_is_filled_in_field_by_field() {
    for era in ["legacy", "modern"] {
        let fake = asking(era, &form());
        let (_crib, mut person) = start(&fake);
        person.hears("s asks for input:");
        person.hears("Answer? [yes, no = decline, cancel] ");
        person.says("\n");
        person.hears("Answer?");
        person.says("yes\n");
        for (question, line) in [
            ("Your name (name): text, at least 2 characters, required", "A"),
            ("is too short", ""),
            ("it is required", "Ada"),
            ("age: a whole number, at least 0, optional", "old"),
            ("that is no number", ""),
            ("colour: one of these, required", "blue"),
            ("none of the choices", "green"),
            ("days: any of these", "1,wed"),
            ("news: yes or no, required", ""),
        ] {
            person.hears(question);
            person.hears("> ");
            person.says(&format!("{line}\n"));
        }
        person.hears("To s:");
        let review = plain(&person.hears("Send it? [yes, again, no = decline, cancel] "));
        for line in ["name = \"Ada\"", "colour = \"g\"", "days = [\"mon\",\"wed\"]", "news = no"] {
            assert!(review.contains(line), "{review}");
        }
        assert!(!review.contains("age ="), "{review}");
        person.says("yes\n");
        let (code, said, _) = person.ends();
        assert_eq!(code, Some(0), "{said}");
        let content = json!({"name": "Ada", "colour": "g", "days": ["mon", "wed"], "news": false});
        assert_eq!(answered(era, &fake), json!({"action": "accept", "content": content}));
    }
}

/// What a person sees of a form, whole.
#[test]
fn a_form_reads_like_this() {
    let fake = asking("modern", &form());
    let (_crib, mut person) = start(&fake);
    for line in ["yes", "Ada", "", "2", "", "y", "no"] {
        person.hears(if matches!(line, "yes" | "no") { "cancel] " } else { "> " });
        person.says(&format!("{line}\n"));
    }
    let (_, said, _) = person.ends();
    insta::assert_snapshot!(plain(&said));
}

#[test]
fn declining_cancelling_and_interrupting_are_told_apart() {
    let check = |keys: &[&str], action: &str, eras: &[&str]| {
        for era in eras {
            let fake = asking(era, &form());
            let (_crib, mut person) = start(&fake);
            for (at, key) in keys.iter().enumerate() {
                person.hears(if at == 0 { "Answer? [" } else { "> " });
                person.says(key);
            }
            let (code, said, _) = person.ends();
            // The call goes on: what it comes to is the server's word.
            assert_eq!(code, Some(0), "{said}");
            assert_eq!(answered(era, &fake), json!({"action": action}), "{era} {keys:?}");
            assert_eq!(still_there(&fake.log().pids(), Duration::from_secs(2)), []);
        }
    };
    check(&["no\n"], "decline", &["legacy", "modern"]);
    check(&["cancel\n"], "cancel", &["modern"]);
    check(&["\u{3}"], "cancel", &["modern"]);
    check(&["yes\n", "A\u{3}"], "cancel", &["legacy", "modern"]);
    check(&["yes\n", "\u{4}"], "cancel", &["modern"]);
}

/// The second interrupt, with no question open, ends the program.
#[test]
fn an_interrupt_without_a_question_ends_the_program() {
    let fake = asking("legacy", &form());
    let (_crib, mut person) = start(&fake);
    person.hears("Answer? [");
    person.says("\u{3}");
    // The server takes its time after the answer.
    std::thread::sleep(Duration::from_millis(300));
    person.says("\u{3}");
    let (code, said, _) = person.ends();
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(answered("legacy", &fake), json!({"action": "cancel"}));
    assert_eq!(still_there(&fake.log().pids(), Duration::from_secs(2)), []);
}

/// The whole URL and its host are shown; nothing is opened; yes is consent and no more.
#[test]
fn a_url_is_shown_whole_with_its_host() {
    let url = format!("https://auth.example/start?state={}", "x".repeat(300));
    let params = json!({"mode": "url", "message": "Sign in", "elicitationId": "e1", "url": url});
    for (line, action) in [("y\n", "accept"), ("n\n", "decline")] {
        for era in ["legacy", "modern"] {
            let fake = asking(era, &params);
            let (_crib, mut person) = start(&fake);
            person.hears("s asks you to visit a page of auth.example:");
            let shown = person.hears("Opened? [yes, no = decline, cancel] ");
            assert!(
                shown.contains(&url) && shown.contains("Nothing is opened for you."),
                "{shown}"
            );
            person.says(line);
            assert_eq!(person.ends().0, Some(0));
            assert_eq!(answered(era, &fake), json!({"action": action}));
        }
    }
}

/// A legacy server that refuses until a page was visited is asked once more after it was.
#[test]
fn a_page_that_is_required_first_is_visited_and_the_call_repeated() {
    let page = json!({"mode": "url", "message": "Sign in", "elicitationId": "e1", "url": "https://auth.example/x"});
    let error =
        json!({"code": -32042, "message": "sign in first", "data": {"elicitations": [page]}});
    for (line, code, calls) in [("yes\n", 0, 2), ("no\n", 12, 1)] {
        let fake = Fake::scripted(&scenario(
            &json!({"steps": [{"expect": "tools/call"}, {"error": error}]}),
        ));
        let (_crib, mut person) = start(&fake);
        person.hears("auth.example");
        person.hears("Opened? [");
        person.says(line);
        let (ended, said, _) = person.ends();
        assert_eq!(ended, Some(code), "{said}");
        assert_eq!(fake.log().count("tools/call"), calls);
    }
}

/// Reads and prompts are held up by questions as well.
#[test]
fn reads_and_prompts_ask_too() {
    let schema =
        json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    let params = json!({"message": "Sure?", "requestedSchema": schema});
    for args in [["read", "notes://a"], ["prompt", "s.p"]] {
        let fake = asking("modern", &params);
        let mut crib = Crib::of(&fake);
        crib.world.env("NO_COLOR", "1");
        let mut person = crib.talk_at_terminal(&args);
        for (question, line) in [("Answer?", "yes\n"), ("> ", "yes\n"), ("Send it?", "yes\n")] {
            person.hears(question);
            person.says(line);
        }
        let (code, said, _) = person.ends();
        assert_eq!(code, Some(0), "{said}");
        let content = json!({"ok": true});
        assert_eq!(answered("modern", &fake), json!({"action": "accept", "content": content}));
    }
}

/// Nobody is there, or nobody is to be asked: the capability is not declared.
#[test]
fn where_nobody_can_answer_nothing_is_declared() {
    let declared =
        |fake: &Fake| fake.log().requests("initialize")[0]["params"]["capabilities"].clone();
    let check = |args: &[&str], at_terminal: bool, expect: Value| {
        let fake = Fake::scripted(&scenario(&json!({})));
        let crib = Crib::of(&fake);
        let args = [&["call", "s.alpha"], args].concat();
        let code =
            if at_terminal { crib.talk_at_terminal(&args).ends().0 } else { crib.run(&args).code };
        assert_eq!(code, Some(0), "{args:?}");
        assert_eq!(declared(&fake), expect, "{args:?}");
    };
    check(&[], true, json!({"elicitation": {"form": {}, "url": {}}}));
    check(&["--json"], true, json!({}));
    check(&["--no-input"], true, json!({}));
    check(&[], false, json!({}));
}
