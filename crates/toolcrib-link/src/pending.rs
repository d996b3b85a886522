//! Requests in flight: which ids we minted, who waits for them, and what odd answers came.
//!
//! Nothing is ever handed to a waiter whose id the answer does not carry; what cannot be matched
//! is counted and shown, so that a timeout can say why nothing came.

use std::{collections::HashMap, sync::Mutex};

use tokio::sync::{mpsc, oneshot};
use toolcrib_core::{
    finding::{Finding, Tier},
    raw::Raw,
    rpc::{Progress, RpcError},
};

use crate::channel::{Closed, ExchangeError};

/// How a request ended, before anyone judges it.
pub(crate) type Outcome = Result<Raw, Failure>;

/// Why there is no result.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The server answered with an error.
    Rpc(RpcError),
    /// The HTTP exchange gave no answer.
    Exchange(ExchangeError),
    /// The connection is gone.
    Closed(Closed),
    /// The server broke the protocol and the connection was given up.
    Violation(String),
}

/// What arrives for a request before its answer.
#[derive(Debug, Clone)]
pub(crate) enum Notice {
    /// Progress of our own token.
    Progress(Progress),
    /// A listen request was acknowledged, with these parameters.
    Acknowledged(Raw),
    /// A resource that a listen request names was updated: its URI, or that of a part of it.
    Updated(String),
}

struct Waiter {
    answer: oneshot::Sender<Outcome>,
    notices: Option<mpsc::Sender<Notice>>,
    progress: f64,
    /// True for a listen request, the only kind that a server may cancel.
    listens: bool,
}

#[derive(Default)]
struct Inner {
    waiting: HashMap<u64, Waiter>,
    ended: Option<Failure>,
    last_id: u64,
    oddities: Oddities,
}

/// What came that should not have.
#[derive(Debug, Clone, Default)]
struct Oddities {
    noise: u64,
    first_noise: Option<String>,
    lossy: u64,
    unknown_ids: u64,
    first_unknown_id: Option<String>,
    dressed_ids: u64,
    late: u64,
}

/// The table of requests in flight.
#[derive(Default)]
pub(crate) struct Pending(Mutex<Inner>);

impl Pending {
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Mints an id and enters a waiter for it; fails when the connection has ended.
    pub(crate) fn enter(
        &self,
        notices: Option<mpsc::Sender<Notice>>,
        listens: bool,
    ) -> Result<(u64, oneshot::Receiver<Outcome>), Failure> {
        let mut inner = self.lock();
        if let Some(failure) = &inner.ended {
            return Err(failure.clone());
        }
        inner.last_id += 1;
        let id = inner.last_id;
        let (answer, receiver) = oneshot::channel();
        inner.waiting.insert(id, Waiter { answer, notices, progress: f64::NEG_INFINITY, listens });
        Ok((id, receiver))
    }

    /// Removes a waiter; true when its answer had not come.
    pub(crate) fn leave(&self, id: u64) -> bool {
        self.lock().waiting.remove(&id).is_some()
    }

    /// Hands an outcome to the waiter of `id`.
    pub(crate) fn settle(&self, id: u64, outcome: Outcome) {
        let mut inner = self.lock();
        match inner.waiting.remove(&id) {
            // The waiter may have gone in the same instant; then nobody needs the answer.
            Some(waiter) => drop(waiter.answer.send(outcome)),
            None if id >= 1 && id <= inner.last_id => inner.oddities.late += 1,
            None => inner.unknown(id.to_string()),
        }
    }

    /// Ends every listen request because we close; gives their ids, so that the server can be told.
    pub(crate) fn end_all_listening(&self) -> Vec<u64> {
        let mut inner = self.lock();
        let listens = inner.waiting.iter().filter(|(_, waiter)| waiter.listens);
        let ids: Vec<u64> = listens.map(|(id, _)| *id).collect();
        for id in &ids {
            if let Some(waiter) = inner.waiting.remove(id) {
                drop(waiter.answer.send(Err(Failure::Closed(Closed::ByUs))));
            }
        }
        ids
    }

    /// Ends the listen request `id` like an empty result would; nothing, when it is none.
    pub(crate) fn end_listening(&self, id: u64) {
        let mut inner = self.lock();
        if inner.waiting.get(&id).is_some_and(|waiter| waiter.listens)
            && let Some(waiter) = inner.waiting.remove(&id)
        {
            drop(waiter.answer.send(Ok(Raw::empty_object())));
        }
    }

    /// Notes an answer whose id was written in another dress (`"7"`, `7.0`).
    pub(crate) fn note_dressed(&self) {
        self.lock().oddities.dressed_ids += 1;
    }

    /// Notes an answer that belongs to nobody.
    pub(crate) fn note_unknown(&self, id: String) {
        self.lock().unknown(id);
    }

    /// The only request in flight, when there is exactly one.
    pub(crate) fn only(&self) -> Option<u64> {
        let inner = self.lock();
        (inner.waiting.len() == 1).then(|| inner.waiting.keys().next().copied())?
    }

    /// Passes a notice on to the waiter of `id`; progress must increase.
    pub(crate) fn notice(&self, id: u64, notice: Notice, progress: Option<f64>) -> bool {
        let mut inner = self.lock();
        let Some(waiter) = inner.waiting.get_mut(&id) else { return false };
        if let Some(progress) = progress {
            if progress <= waiter.progress {
                return false;
            }
            waiter.progress = progress;
        }
        // A waiter that does not keep up loses notices, never the answer.
        waiter.notices.as_ref().is_some_and(|notices| notices.try_send(notice).is_ok())
    }

    /// Notes text that is no message.
    pub(crate) fn note_noise(&self, excerpt: String) {
        let mut inner = self.lock();
        inner.oddities.noise += 1;
        inner.oddities.first_noise.get_or_insert(excerpt);
    }

    /// Notes undecodable bytes.
    pub(crate) fn note_lossy(&self) {
        self.lock().oddities.lossy += 1;
    }

    /// Ends everything: all waiters and all later requests get `failure`. The first reason stays.
    pub(crate) fn end(&self, failure: &Failure) {
        let mut inner = self.lock();
        inner.ended.get_or_insert_with(|| failure.clone());
        for (_, waiter) in inner.waiting.drain() {
            drop(waiter.answer.send(Err(failure.clone())));
        }
    }

    /// Why nothing may have come, for a timeout's text.
    pub(crate) fn hint(&self) -> Option<String> {
        let inner = self.lock();
        let odd = &inner.oddities;
        match (&odd.first_unknown_id, &odd.first_noise) {
            (Some(id), _) => Some(format!("the server sent a response for unknown id {id}")),
            (None, Some(noise)) => {
                Some(format!("the server wrote text that is no message: {noise}"))
            }
            (None, None) => None,
        }
    }

    /// What was noticed, one finding per kind.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let inner = self.lock();
        let odd = &inner.oddities;
        let mut findings = Vec::new();
        let mut add = |rule, tier, message: String| {
            findings.push(Finding::new(rule, tier, "", message));
        };
        if let Some(first) = &odd.first_noise {
            add(
                "wire/noise",
                Tier::Soft,
                format!(
                    "{} lines that are no JSON-RPC were skipped, the first: {first}",
                    odd.noise
                ),
            );
        }
        if odd.lossy > 0 {
            let message = format!("{} messages held bytes that are not UTF-8", odd.lossy);
            add("wire/not-utf8", Tier::Soft, message);
        }
        if let Some(first) = &odd.first_unknown_id {
            add(
                "wire/unknown-id",
                Tier::Soft,
                format!("{} responses for unknown ids, the first: {first}", odd.unknown_ids),
            );
        }
        if odd.dressed_ids > 0 {
            add(
                "wire/id-type",
                Tier::Soft,
                format!("{} responses changed the type of the id they echo", odd.dressed_ids),
            );
        }
        findings
    }
}

impl Inner {
    fn unknown(&mut self, id: String) {
        self.oddities.unknown_ids += 1;
        self.oddities.first_unknown_id.get_or_insert(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reaches_its_own_waiter_only() {
        let pending = Pending::default();
        let (first, mut one) = pending.enter(None, false).unwrap();
        let (second, mut two) = pending.enter(None, false).unwrap();
        pending.settle(0, Ok(Raw::empty_object()));
        pending.settle(second, Ok(Raw::of(&2)));
        assert!(one.try_recv().is_err());
        assert_eq!(two.try_recv().unwrap().unwrap().get(), "2");
        assert!(pending.hint().unwrap().contains("unknown id 0"));
        assert!(pending.leave(first) && !pending.leave(first));
        pending.settle(first, Ok(Raw::empty_object()));
        assert_eq!(pending.findings().len(), 1, "a late answer is no finding");
    }

    #[test]
    fn a_server_ends_listen_requests_only() {
        let pending = Pending::default();
        let (call, mut answer) = pending.enter(None, false).unwrap();
        let (listen, mut ended) = pending.enter(None, true).unwrap();
        pending.end_listening(call);
        pending.end_listening(listen);
        assert!(answer.try_recv().is_err(), "a call is not over");
        assert!(ended.try_recv().unwrap().is_ok());
    }

    #[test]
    fn progress_must_increase() {
        let pending = Pending::default();
        let (sender, mut notices) = mpsc::channel(8);
        let (id, _answer) = pending.enter(Some(sender), false).unwrap();
        let check = |progress: f64, expect: bool| {
            let params = serde_json::json!({"progressToken": id, "progress": progress});
            let (_, read) = Progress::read(&Raw::of(&params)).unwrap();
            let notice = Notice::Progress(read);
            assert_eq!(pending.notice(id, notice, Some(progress)), expect, "{progress}");
        };
        check(0.0, true);
        check(0.5, true);
        check(0.4, false);
        assert!(!pending.notice(99, Notice::Updated("x".into()), None));
        assert!(matches!(notices.try_recv(), Ok(Notice::Progress(_))));
    }

    #[test]
    fn the_first_reason_for_an_end_stays() {
        let pending = Pending::default();
        let (_, mut answer) = pending.enter(None, false).unwrap();
        pending.end(&Failure::Violation("x".into()));
        pending.end(&Failure::Closed(Closed::ByUs));
        assert!(matches!(answer.try_recv(), Ok(Err(Failure::Violation(_)))));
        assert!(matches!(pending.enter(None, false), Err(Failure::Violation(_))));
    }
}
