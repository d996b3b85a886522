//! `watch URI`: one resource, followed until it is interrupted. Where the server announces no
//! updates it is read again from time to time, and that is said.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::sleep;
use toolcrib_core::{code::Code, raw::Raw, surface::ListKind};
use toolcrib_engine::{CallError, Engine, ResourceEvent, SubscribeError, Subscription};
use toolcrib_link::jitter::jittered;

use super::{
    args::Global,
    call::call_options,
    named::{missing_server, warn_of_absent},
    wait,
};
use crate::{
    failure::{Failure, Outcome},
    show::{
        Out, Talk, content,
        event::{self, Shown},
    },
};

/// The shortest and the longest time after which what is not announced is read again.
pub(super) const REREAD: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));

/// One resource and how it is shown.
struct Followed<'a> {
    global: &'a Global,
    engine: &'a Engine,
    server: String,
    uri: &'a str,
    /// Whether its content is shown, too.
    read: bool,
    out: Out,
}

pub(super) async fn follow(
    global: &Global,
    engine: &Engine,
    server: Option<&str>,
    uri: &str,
    read: bool,
) -> Outcome {
    let kinds = [ListKind::Resources, ListKind::ResourceTemplates];
    let snapshot = wait::settled(engine, &kinds).await;
    warn_of_absent(&snapshot);
    if let Some(failure) = missing_server(&snapshot) {
        return Err(failure);
    }
    let subscribed = engine.subscribe(uri, server).await;
    let mut followed =
        Followed { global, engine, server: String::new(), uri, read, out: Out::new() };
    match subscribed {
        Ok(subscription) => {
            subscription.server().clone_into(&mut followed.server);
            followed.announced(subscription).await
        }
        Err(CallError::Subscribe(
            error @ (SubscribeError::NotOffered { .. } | SubscribeError::Refused { .. }),
        )) => {
            let (SubscribeError::NotOffered { server } | SubscribeError::Refused { server, .. }) =
                &error
            else {
                return Err(error.into());
            };
            server.clone_into(&mut followed.server);
            let (first, last) = (REREAD.0.as_secs(), REREAD.1.as_secs());
            Talk::warn(format!("{error}: read again every {first} to {last} s"));
            followed.polled().await
        }
        Err(error) => Err(error.into()),
    }
}

impl Followed<'_> {
    fn show(&mut self, shown: &Shown<'_>) -> Result<(), Failure> {
        Ok(event::print(&mut self.out, self.global.json, shown)?)
    }

    /// Shows what is announced.
    async fn announced(&mut self, mut subscription: Subscription) -> Outcome {
        let server = self.server.clone();
        self.following(true).await?;
        loop {
            match subscription.next().await {
                Ok(ResourceEvent::Updated { uri }) => self.updated(&uri).await?,
                Ok(ResourceEvent::Resumed) => {
                    self.show(&Shown::Resumed { server: &server, uri: self.uri })?;
                    if self.read {
                        let uri = self.uri;
                        self.updated(uri).await?;
                    }
                }
                Ok(ResourceEvent::Interrupted { why }) => {
                    self.show(&Shown::Interrupted { server: &server, uri: self.uri, why: &why })?;
                }
                // What else there may be one day changes nothing about the content.
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn following(&mut self, announced: bool) -> Result<Option<Raw>, Failure> {
        let result = if self.read || !announced { self.content(self.uri).await? } else { None };
        let server = self.server.clone();
        let shown = result.as_ref().filter(|_| self.read);
        self.show(&Shown::Following { server: &server, uri: self.uri, announced, result: shown })?;
        self.write(shown)?;
        Ok(result)
    }

    async fn updated(&mut self, uri: &str) -> Result<(), Failure> {
        let server = self.server.clone();
        let result = if self.read { self.content(uri).await? } else { None };
        self.show(&Shown::Updated { server: &server, uri, result: result.as_ref() })?;
        self.write(result.as_ref())
    }

    fn write(&mut self, result: Option<&Raw>) -> Result<(), Failure> {
        if let (Some(result), false) = (result, self.global.json) {
            content::resource(&mut self.out, result)?;
        }
        Ok(())
    }

    /// Reads it again and again, and shows when it is another one.
    async fn polled(&mut self) -> Outcome {
        let mut last = self.following(false).await?;
        let mut pause = fresh_for(last.as_ref());
        loop {
            sleep(jittered(pause)).await;
            let now = self.content(self.uri).await?;
            if now.is_none() || now.as_ref().map(contents) == last.as_ref().map(contents) {
                pause = (pause * 2).min(REREAD.1);
                continue;
            }
            let server = self.server.clone();
            let shown = now.as_ref().filter(|_| self.read);
            self.show(&Shown::Updated { server: &server, uri: self.uri, result: shown })?;
            self.write(shown)?;
            pause = fresh_for(now.as_ref());
            last = now;
        }
    }

    /// The content now. That it cannot be read is shown, and ends nothing.
    async fn content(&mut self, uri: &str) -> Result<Option<Raw>, Failure> {
        let server = self.server.clone();
        match self.engine.read(uri, Some(&server), call_options(self.global)).await {
            Ok(called) => Ok(Some(called.result)),
            Err(error) if error.code() == Code::Cancelled => Err(error.into()),
            Err(error) => {
                let why = error.to_string();
                self.show(&Shown::Unread { server: &server, uri, why: &why })?;
                Ok(None)
            }
        }
    }
}

/// What is compared: the contents, not what stands beside them.
fn contents(result: &Raw) -> String {
    let contents = toolcrib_core::rpc::message::member(result, "contents");
    contents.as_ref().unwrap_or(result).get().to_owned()
}

/// How long a modern server says that what it sent stays fresh, within bounds.
fn fresh_for(result: Option<&Raw>) -> Duration {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cached {
        #[serde(default)]
        ttl_ms: u64,
    }
    let cached = result.and_then(|result| result.read::<Cached>().ok());
    let ttl = cached.map_or(Duration::ZERO, |cached| Duration::from_millis(cached.ttl_ms));
    ttl.clamp(REREAD.0, REREAD.1)
}
