//! Hands what an exchange carried to the session, tying answers without a usable id to it.
//!
//! On HTTP the exchange itself says which request an error answers, so an error whose id is null
//! or foreign (servers write `"server-error"`) is given the id of the exchange. A result is not:
//! a result under another id is somebody else's.

use toolcrib_core::{
    rpc::{Decoded, Message, ReplyId, sse::Event},
    sanitise,
};

use super::peer::Peer;
use crate::channel::{ExchangeError, Inbound};

/// The session no longer listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gone;

/// What one exchange, or one stream, delivers.
pub(super) struct Delivery<'a> {
    peer: &'a Peer,
    origin: Option<u64>,
    /// The answer to `origin` was delivered.
    pub(super) answered: bool,
    /// The first text that was no message.
    noise: Option<String>,
}

impl<'a> Delivery<'a> {
    pub(super) const fn new(peer: &'a Peer, origin: Option<u64>) -> Self {
        Self { peer, origin, answered: false, noise: None }
    }

    /// Delivers the message in an event; events without data and of other types are no messages,
    /// though an answer under an odd type is still an answer.
    pub(super) async fn event(&mut self, event: Event) -> Result<(), Gone> {
        if event.data.is_empty() {
            return Ok(());
        }
        if !event.is_message() && matches!(Decoded::read(&event.data), Decoded::Noise(_)) {
            self.peer.http.trace_in(&event.data);
            self.noise.get_or_insert_with(|| sanitise::line(&event.data, 120));
            return Ok(());
        }
        self.text(&event.data, event.lossy).await
    }

    /// Delivers one message or batch.
    pub(super) async fn text(&mut self, text: &str, lossy: bool) -> Result<(), Gone> {
        self.peer.http.trace_in(text);
        if lossy {
            self.put(Inbound::Lossy).await?;
        }
        let origin = self.origin;
        match Decoded::read(text) {
            Decoded::Message(message) => {
                let message = self.tie(message);
                self.put(Inbound::Message { origin, message }).await
            }
            Decoded::Batch(messages, odd) => {
                let messages = messages.into_iter().map(|message| self.tie(message)).collect();
                self.put(Inbound::Batch { origin, messages }).await?;
                if odd == 0 {
                    return Ok(());
                }
                self.put(Inbound::Noise(format!("{odd} members of a batch are no messages"))).await
            }
            Decoded::Noise(excerpt) => {
                self.noise.get_or_insert_with(|| excerpt.clone());
                self.put(Inbound::Noise(excerpt)).await
            }
        }
    }

    /// Why there is no answer: what came instead, if anything did.
    pub(super) fn missing(&self, content_type: &str) -> ExchangeError {
        match &self.noise {
            Some(excerpt) => ExchangeError::NotRpc {
                content_type: content_type.to_owned(),
                excerpt: excerpt.clone(),
            },
            None => ExchangeError::StreamEnded,
        }
    }

    fn tie(&mut self, message: Message) -> Message {
        let Some(origin) = self.origin else { return message };
        let Message::Response { id, outcome } = message else { return message };
        let id = match id {
            ReplyId::Null | ReplyId::Foreign(_) if outcome.is_err() => ReplyId::Ours(origin),
            other => other,
        };
        self.answered |= matches!(id, ReplyId::Ours(n) | ReplyId::Dressed(n) if n == origin);
        Message::Response { id, outcome }
    }

    async fn put(&self, inbound: Inbound) -> Result<(), Gone> {
        self.peer.inbox.send(inbound).await.map_err(|_| Gone)
    }
}
