//! One running request as a stream: what its handler tells meanwhile, then the answer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use toolcrib_core::{
    raw::Raw,
    rpc::{RpcError, message},
};

use crate::{
    peer::Peer,
    service::{Job, Service},
};

/// How many notifications may wait; a handler that tells more waits.
const WAITING: usize = 16;

/// One message of an exchange.
pub(crate) enum Frame {
    /// More follows.
    Note(String),
    /// The last one, and the code when it is an error.
    Answer(String, Option<i64>),
}

impl Frame {
    /// The message.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Note(text) | Self::Answer(text, _) => text,
        }
    }

    /// An answer.
    pub(crate) fn answer(id: &Raw, outcome: &Result<Raw, RpcError>) -> Self {
        let code = outcome.as_ref().err().map(|error| error.code);
        Self::Answer(message::response(id, outcome), code)
    }
}

/// One running request. Dropping it drops the handler's future.
pub(crate) struct Exchange {
    notes: mpsc::Receiver<String>,
    state: State,
}

enum State {
    Running(BoxFuture<'static, Frame>),
    Answered(Frame),
    Over,
}

impl Exchange {
    /// Prepares it; the handler runs while [`Exchange::next`] is awaited.
    pub(crate) fn new(service: Arc<Service>, id: Raw, job: Job) -> Self {
        let (out, notes) = mpsc::channel(WAITING);
        let Job { request, token, level, capabilities, client_info, asking } = job;
        let peer = Peer { out, token, level, capabilities, client_info, asking };
        let running = async move { Frame::answer(&id, &service.run(request, peer).await) };
        Self { notes, state: State::Running(Box::pin(running)) }
    }

    /// Nobody reads what it tells any more: questions end, notes are dropped.
    pub(crate) fn hang_up(&mut self) {
        self.notes.close();
        while self.notes.try_recv().is_ok() {}
    }

    /// True when nobody is told anything any more.
    pub(crate) fn is_hung_up(&self) -> bool {
        self.notes.is_closed()
    }

    /// The next message; `None` after the answer. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        if let State::Running(running) = &mut self.state {
            let answer = tokio::select! {
                biased;
                Some(note) = self.notes.recv() => return Some(Frame::Note(note)),
                answer = running => answer,
            };
            self.notes.close();
            self.state = State::Answered(answer);
        }
        if let Ok(note) = self.notes.try_recv() {
            return Some(Frame::Note(note));
        }
        match std::mem::replace(&mut self.state, State::Over) {
            State::Answered(answer) => Some(answer),
            _ => None,
        }
    }
}
