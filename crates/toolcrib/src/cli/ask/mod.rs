//! What a server asks while it works on a request, put to the person at the terminal: forms field
//! by field, and URLs to visit.
//!
//! Who asks and what is shown first; nothing is filled in or opened for the person, and nothing is
//! sent before they have seen all of it. Away from a terminal, with `--json` or `--no-input`, no
//! such capability is declared at all.

mod field;
mod terminal;

use anstyle::Style;
use serde_json::{Map, Value};
use toolcrib_core::{limits::Limits, sanitise};
use toolcrib_engine::{Elicited, Field, FormQuestion, Handlers, UrlQuestion};

use self::{
    field::{Typed, introduction, shown, typed},
    terminal::Conversation,
};
use super::args::Global;
use crate::show::Talk;

pub(super) use terminal::interrupted;

/// Most characters shown of what a server says.
const MESSAGE: usize = 4_000;

/// Handlers that ask the person; none when nobody is there to ask.
pub(super) fn handlers(global: &Global) -> Handlers {
    if global.json || global.no_input || !terminal::is_there() {
        return Handlers::new();
    }
    Handlers::new().on_form(form).on_url(url)
}

/// What becomes of a whole question.
enum Verdict {
    Yes,
    Again,
    Decline,
    Cancel,
}

async fn form(question: FormQuestion) -> Elicited {
    let mut talk = Conversation::begin().await;
    let server = sanitise::line(&question.server, 64);
    head(&format!("{server} asks for input:"), &question.message);
    let count = question.form.fields.len();
    let fields = if count == 1 { "1 field".to_owned() } else { format!("{count} fields") };
    Talk::say(format!("{fields}; what you enter goes to {server}. Ctrl-C cancels at any time."));
    match verdict(&mut talk, "Answer?", false).await {
        Verdict::Yes | Verdict::Again => {}
        Verdict::Decline => return Elicited::Decline,
        Verdict::Cancel => return Elicited::Cancel,
    }
    loop {
        let Some(content) = fill_in(&mut talk, &question.form.fields).await else {
            return Elicited::Cancel;
        };
        if let Err(misfit) = question.form.check(&content, &Limits::default()) {
            // Each field fits by itself, and the form wants more than that.
            Talk::warn(format!(
                "this does not fit the form: {}",
                sanitise::block(&misfit.to_string())
            ));
        } else {
            review(&server, &content);
            match verdict(&mut talk, "Send it?", true).await {
                Verdict::Yes => return Elicited::Accept(content),
                Verdict::Again => {}
                Verdict::Decline => return Elicited::Decline,
                Verdict::Cancel => return Elicited::Cancel,
            }
        }
    }
}

/// Asks for every field until it fits; `None` when the person cancels.
async fn fill_in(talk: &mut Conversation, fields: &[Field]) -> Option<Map<String, Value>> {
    let limits = Limits::default();
    let mut content = Map::new();
    for field in fields {
        Talk::say("");
        introduction(field).iter().for_each(Talk::say);
        loop {
            let line = talk.line("> ").await?;
            match typed(field, &line, &limits) {
                Typed::Value(value) => {
                    content.insert(field.name.clone(), value);
                    break;
                }
                Typed::LeftOut => break,
                Typed::Misfit(why) => Talk::warn(sanitise::block(&why)),
            }
        }
    }
    Some(content)
}

fn review(server: &str, content: &Map<String, Value>) {
    Talk::say("");
    if content.is_empty() {
        Talk::say(format!("To {server}: an answer without any field"));
        return;
    }
    Talk::say(format!("To {server}:"));
    for (name, value) in content {
        Talk::say(format!("  {} = {}", sanitise::line(name, 80), shown(value)));
    }
}

async fn url(question: UrlQuestion) -> Elicited {
    let mut talk = Conversation::begin().await;
    let server = sanitise::line(&question.server, 64);
    let host = sanitise::line(&question.host, 300);
    head(&format!("{server} asks you to visit a page of {host}:"), &question.message);
    // No hidden character is in it, and all of it is shown.
    Talk::say(format!("  {}", question.url));
    if !question.url.to_lowercase().starts_with("https:") {
        Talk::warn("this address is not encrypted");
    }
    Talk::say(format!(
        "Nothing is opened for you. Open it only if you know {host} and expected this, then say yes."
    ));
    match verdict(&mut talk, "Opened?", false).await {
        Verdict::Yes | Verdict::Again => Elicited::Accept(Map::new()),
        Verdict::Decline => Elicited::Decline,
        Verdict::Cancel => Elicited::Cancel,
    }
}

fn head(title: &str, message: &str) {
    let bold = Style::new().bold();
    Talk::say("");
    Talk::say(format!("{bold}{title}{bold:#}"));
    let message: String = message.chars().take(MESSAGE).collect();
    // Set in, so that no line of it can pass for one of ours.
    for line in sanitise::block(&message).lines() {
        Talk::say(format!("  {line}"));
    }
}

/// Asks until the answer is plain: there is no answer that is taken for granted.
async fn verdict(talk: &mut Conversation, question: &str, again: bool) -> Verdict {
    let or_again = if again { ", again" } else { "" };
    let prompt = format!("{question} [yes{or_again}, no = decline, cancel] ");
    loop {
        let Some(line) = talk.line(&prompt).await else { return Verdict::Cancel };
        match &*line.trim().to_lowercase() {
            "y" | "yes" => return Verdict::Yes,
            "a" | "again" if again => return Verdict::Again,
            "n" | "no" | "decline" => return Verdict::Decline,
            "c" | "cancel" => return Verdict::Cancel,
            _ => {}
        }
    }
}
