//! `watch`: what happens to servers and their lists, as it happens, until it is interrupted. A
//! server that announces nothing is read again from time to time, and that is said.

use std::{collections::BTreeMap, pin::Pin, time::Duration};

use tokio::time::{Instant, sleep_until};
use toolcrib_core::{
    code::Code,
    surface::{ListKind, ListState},
};
use toolcrib_engine::{Engine, Event, Mode, Part, Status};
use toolcrib_link::jitter::jittered;

use super::{
    args::{Global, Watch},
    setup::{Setup, watching},
    wait,
    watch_resource::{self, REREAD},
};
use crate::{
    failure::{Failure, Outcome},
    show::{
        Out, Talk,
        event::{self, Shown, plural},
    },
};

/// What is to be watched.
#[derive(Debug, PartialEq, Eq)]
enum Watched<'a> {
    Servers(&'a [String]),
    Resource { server: Option<&'a str>, uri: &'a str },
}

/// Tells servers from a URI: names of servers have no colon.
fn wanted(what: &[String]) -> Result<Watched<'_>, Failure> {
    if !what.iter().any(|word| word.contains(':')) {
        return Ok(Watched::Servers(what));
    }
    match what {
        [uri] => Ok(Watched::Resource { server: None, uri }),
        [server, uri] if !server.contains(':') => {
            Ok(Watched::Resource { server: Some(server), uri })
        }
        _ => Err(Failure::usage("watch one resource at a time")
            .hint("toolcrib watch [SERVER] URI, or toolcrib watch [SERVER…]")),
    }
}

pub(crate) async fn run(global: &Global, args: Watch) -> Outcome {
    let wanted = wanted(&args.what)?;
    if args.read && matches!(wanted, Watched::Servers(_)) {
        return Err(Failure::usage("--read goes with the URI of a resource"));
    }
    let setup = Setup::load(global)?;
    let named: Vec<&str> = match &wanted {
        Watched::Servers(names) => names.iter().map(String::as_str).collect(),
        Watched::Resource { server, .. } => server.iter().copied().collect(),
    };
    for name in &named {
        setup.server(name)?;
    }
    let servers = setup.servers(|name| named.is_empty() || named.contains(&name))?;
    let mut options = setup.options();
    options.mode = Mode::Live;
    let engine = setup.start(servers, options)?;
    watching(engine, async |engine| match wanted {
        Watched::Servers(_) => lists(global, engine).await,
        Watched::Resource { server, uri } => {
            watch_resource::follow(global, engine, server, uri, args.read).await
        }
    })
    .await
}

async fn lists(global: &Global, engine: &Engine) -> Outcome {
    wait::settled(engine, &ListKind::ALL).await;
    let mut listener = engine.listen();
    let snapshot = std::sync::Arc::clone(listener.snapshot());
    let enabled = || snapshot.parts().filter(|part| part.status != Status::Disabled);
    if enabled().next().is_none() {
        return Err(Failure::new(Code::Unreachable, "all servers are disabled"));
    }
    let mut out = Out::new();
    let mut rereads = Rereads::default();
    for part in enabled() {
        rereads.note(part);
        introduce(global, &mut out, part, rereads.every(part.name()))?;
    }
    let mut told = Told::default();
    // Beside everything else, so that a slow server holds back nothing that is to be told.
    let mut rereading: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(std::future::ready(()));
    let mut busy = false;
    loop {
        let due = rereads.due().filter(|_| !busy);
        tokio::select! {
            event = listener.next() => {
                let Some(event) = event else { return Ok(Code::Ok) };
                if let Event::Status { server, .. } = &event
                    && let Some(part) = listener.snapshot().part(server)
                {
                    rereads.note(part);
                }
                if let Event::Items { server, .. } = &event {
                    rereads.changed(server);
                }
                if told.is_news(&event) {
                    show(global, &mut out, &event)?;
                }
            }
            () = &mut rereading, if busy => busy = false,
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                let (due, snapshot) = (rereads.take_due(), &snapshot);
                busy = true;
                rereading = Box::pin(async move {
                    for (server, kinds) in due {
                        let most = snapshot.part(&server).map(|part| part.config.timeouts.list);
                        let deadline = Instant::now() + most.unwrap_or(REREAD.0);
                        engine.refresh(&server, &kinds, deadline).await;
                    }
                });
            }
        }
    }
}

/// Says how changes of a server will be heard of.
fn introduce(
    global: &Global,
    out: &mut Out,
    part: &Part,
    every: Option<Duration>,
) -> std::io::Result<()> {
    let name = part.name();
    let announced = announced(part, true);
    if global.json {
        let shown = Shown::Watching {
            server: name,
            status: &part.status,
            announced,
            reread_s: every.map(|every| every.as_secs()),
        };
        return event::print(out, true, &shown);
    }
    let words = |kinds: &[ListKind]| {
        let words: Vec<_> = kinds.iter().map(|kind| plural(*kind)).collect();
        words.join(", ")
    };
    let state = part.status.phrase();
    if !announced.is_empty() {
        Talk::say(format!("watching {name}, which {state}: it announces {}", words(&announced)));
    } else {
        Talk::say(format!("watching {name}, which {state}"));
    }
    let silent = self::announced(part, false);
    if let (Some(every), false) = (every, silent.is_empty()) {
        let most = REREAD.1.as_secs();
        let when = match every.as_secs() {
            every if every < most => format!("every {every} to {most} s"),
            _ => format!("every {most} s or so"),
        };
        let lists = words(&silent);
        Talk::warn(format!("{name} announces no changes of its {lists}: read again {when}"));
    }
    Ok(())
}

fn show(global: &Global, out: &mut Out, happened: &Event) -> std::io::Result<()> {
    let shown = match happened {
        Event::Status { server, status } => Shown::Status { server, status },
        Event::Items { server, kind, added, removed, changed } => {
            Shown::Items { server, kind: *kind, added, removed, changed }
        }
        Event::Updated { server, uri } => Shown::Updated { server, uri, result: None },
        Event::Missed { events } => Shown::Missed { events: *events },
        _ => return Ok(()),
    };
    event::print(out, global.json, &shown)
}

/// The lists a server has whose changes it announces, or those it does not announce. While its
/// change stream is broken, it announces none.
fn announced(part: &Part, wanted: bool) -> Vec<ListKind> {
    let Some(surface) = &part.surface else { return Vec::new() };
    let broken = part.findings.iter().any(|finding| finding.rule == "change/no-stream");
    let offered =
        surface.states().into_iter().filter(|(_, state)| **state != ListState::NotOffered);
    let announces = |kind: ListKind| {
        !broken && surface.negotiated.capabilities.flag(kind.capability(), "listChanged")
    };
    offered.map(|(kind, _)| kind).filter(|kind| announces(*kind) == wanted).collect()
}

/// What was told of each server last: one that is tried again and again for the same reason is no
/// news.
#[derive(Default)]
struct Told(BTreeMap<String, Status>);

impl Told {
    fn is_news(&mut self, event: &Event) -> bool {
        let Event::Status { server, status } = event else { return true };
        let last = self.0.get(server);
        let again = *status == Status::Starting && matches!(last, Some(Status::Failed { .. }));
        if again || last.is_some_and(|last| same(last, status)) {
            return false;
        }
        self.0.insert(server.clone(), status.clone());
        true
    }
}

/// True when a person would read the same.
fn same(one: &Status, another: &Status) -> bool {
    one.word() == another.word() && one.why() == another.why()
}

/// When the lists are read again that nobody announces: after what the server says they stay fresh,
/// ever more rarely while nothing changes.
#[derive(Default)]
struct Rereads(BTreeMap<String, Reread>);

struct Reread {
    kinds: Vec<ListKind>,
    first: Duration,
    pause: Duration,
    due: Instant,
}

impl Rereads {
    /// Looks at how a server stands now.
    fn note(&mut self, part: &Part) {
        let kinds = announced(part, false);
        let live = part.session.is_some() && part.status.is_settled();
        if kinds.is_empty() || !live {
            self.0.remove(part.name());
            return;
        }
        let ttls =
            part.ttls().into_iter().filter(|(kind, ttl)| kinds.contains(kind) && !ttl.is_zero());
        let first = ttls.map(|(_, ttl)| ttl).min().unwrap_or(REREAD.1).clamp(REREAD.0, REREAD.1);
        let due = Instant::now() + jittered(first);
        let fresh = Reread { kinds, first, pause: first, due };
        self.0.entry(part.name().to_owned()).or_insert(fresh);
    }

    fn every(&self, server: &str) -> Option<Duration> {
        self.0.get(server).map(|reread| reread.first)
    }

    fn due(&self) -> Option<Instant> {
        self.0.values().map(|reread| reread.due).min()
    }

    /// What is due by now; the next time is later each time.
    fn take_due(&mut self) -> Vec<(String, Vec<ListKind>)> {
        let now = Instant::now();
        let due = self.0.iter_mut().filter(|(_, reread)| reread.due <= now);
        due.map(|(server, reread)| {
            reread.pause = (reread.pause * 2).min(REREAD.1);
            reread.due = now + jittered(reread.pause);
            (server.clone(), reread.kinds.clone())
        })
        .collect()
    }

    /// Something changed: the pauses begin anew.
    fn changed(&mut self, server: &str) {
        if let Some(reread) = self.0.get_mut(server) {
            reread.pause = reread.first;
            reread.due = reread.due.min(Instant::now() + jittered(reread.first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_resources_are_told_apart() {
        let check = |what: &[&str], expect: Option<(Option<&str>, &str)>| {
            let what: Vec<String> = what.iter().map(|word| (*word).to_owned()).collect();
            match wanted(&what) {
                Ok(Watched::Resource { server, uri }) => assert_eq!(Some((server, uri)), expect),
                Ok(Watched::Servers(_)) => assert_eq!(None, expect, "{what:?}"),
                Err(failure) => assert_eq!(failure.code, Code::Usage),
            }
        };
        check(&[], None);
        check(&["a", "b"], None);
        check(&["notes://a"], Some((None, "notes://a")));
        check(&["a", "notes://a"], Some((Some("a"), "notes://a")));
        check(&["notes://a", "notes://b"], Some((None, "never")));
    }

    #[test]
    fn the_same_failure_is_told_once() {
        let mut told = Told::default();
        let failed =
            |why: &str| Status::Failed { code: Code::Timeout, why: why.into(), retry: None };
        let mut check = |status: Status, expect: bool| {
            let event = Event::Status { server: "s".to_owned(), status };
            assert_eq!(told.is_news(&event), expect, "{event:?}");
        };
        check(failed("x"), true);
        check(Status::Starting, false);
        check(failed("x"), false);
        check(failed("y"), true);
        check(Status::Ready, true);
        check(Status::Starting, true);
    }
}
