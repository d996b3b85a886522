//! Decides what becomes of one request: refused, answered here, or handed to the handler.
//!
//! Both transports route through this file, so an era behaves alike on a pipe and over HTTP.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use toolcrib_core::{
    level::LogLevel,
    limits::Limits,
    raw::Raw,
    rpc::{RpcError, meta, method},
    version::{Era, Version},
};

use crate::{
    about::{CacheScope, Info, ServerAbout},
    ask::{Asking, Rounds, Way},
    change::Filter,
    envelope::Envelope,
    era::{EraSupport, modern_versions},
    fault,
    handler::{Handler, Reply, Request},
    peer::Peer,
    seal::StateKeeping,
    session::Session,
    splice,
    stop::Stop,
};

/// A handler with the rules it is served by.
pub(crate) struct Service {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) era: EraSupport,
    pub(crate) limits: Limits,
    /// How long a handler may take.
    pub(crate) request: Duration,
    /// How long a legacy client may take to answer a question.
    pub(crate) answer: Duration,
    pub(crate) state_key: Arc<StateKeeping>,
    pub(crate) stop: Stop,
}

/// What becomes of a request.
pub(crate) enum Route {
    /// Refused before the handler.
    Refuse(RpcError),
    /// Answered here.
    Answer(Raw),
    /// A legacy handshake: the session it starts, and its answer.
    Start(Box<Session>, Raw),
    /// For the handler.
    Handle(Box<Job>),
    /// A modern change stream of what was granted.
    Listen(Filter),
}

/// A request on its way to the handler, and what its [`Peer`] will know.
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) token: Option<Raw>,
    pub(crate) level: Option<LogLevel>,
    pub(crate) capabilities: Raw,
    pub(crate) client_info: Option<Raw>,
    pub(crate) asking: Asking,
}

impl Service {
    /// True when a request is to be judged by the rules of the modern era. `hinted` says that
    /// something beside the body, a header, speaks for it.
    pub(crate) fn is_modern(&self, method: &str, envelope: &Envelope, hinted: bool) -> bool {
        match self.era {
            EraSupport::Legacy => false,
            EraSupport::Modern => true,
            EraSupport::Dual => {
                hinted
                    || envelope.is_modern()
                    || matches!(method, method::DISCOVER | method::LISTEN)
            }
        }
    }

    /// Routes a modern request. `mirrored` compares what the transport says beside the body; it
    /// runs once the version is known to be there and before it is judged.
    pub(crate) fn modern(
        &self,
        method: String,
        params: Option<Raw>,
        envelope: Envelope,
        mirrored: impl FnOnce(&str) -> Result<(), RpcError>,
    ) -> Route {
        if method == method::INITIALIZE && !envelope.names_version() {
            return Route::Refuse(fault::unsupported_version(&requested(params.as_ref())));
        }
        self.modern_checked(method, params, envelope, mirrored).unwrap_or_else(Route::Refuse)
    }

    fn modern_checked(
        &self,
        method: String,
        params: Option<Raw>,
        envelope: Envelope,
        mirrored: impl FnOnce(&str) -> Result<(), RpcError>,
    ) -> Result<Route, RpcError> {
        let (named, capabilities) = envelope.required()?;
        mirrored(&named)?;
        let version = Version::parse(&named)
            .filter(|version| version.era() == Era::Modern)
            .ok_or_else(|| fault::unsupported_version(&named))?;
        let about = self.handler.about();
        let offered = about.offered();
        match method.as_str() {
            method::INITIALIZE
            | method::PING
            | method::SET_LEVEL
            | method::SUBSCRIBE
            | method::UNSUBSCRIBE => Err(fault::method_not_found(&method)),
            _ if !offered.allows(&method) => Err(fault::method_not_found(&method)),
            method::DISCOVER => {
                Ok(Route::Answer(complete(&discovery(&about), &method, Era::Modern, &about)?))
            }
            method::LISTEN => Ok(Route::Listen(offered.honour(asked(params.as_ref())?))),
            _ => Ok(Route::Handle(Box::new(Job {
                asking: self.rounds(&method, params.as_ref()),
                level: if offered.logging() { envelope.level()? } else { None },
                token: envelope.token(),
                capabilities,
                client_info: envelope.client_info,
                request: Request { method, params, era: Era::Modern, version },
            }))),
        }
    }

    /// Routes a legacy request; `session` is absent before the handshake.
    pub(crate) fn legacy(
        &self,
        session: Option<&Session>,
        method: String,
        params: Option<Raw>,
        envelope: &Envelope,
    ) -> Route {
        match (method.as_str(), session) {
            (method::INITIALIZE, None) => self.start(params.as_ref()),
            (method::INITIALIZE, Some(_)) => {
                Route::Refuse(fault::invalid_request("this session is initialized already"))
            }
            (method::DISCOVER | method::LISTEN, _) => {
                Route::Refuse(fault::method_not_found(&method))
            }
            (method::PING, _) => Route::Answer(Raw::empty_object()),
            (_, None) => Route::Refuse(fault::invalid_params(
                "send initialize first, or put the protocol version into params._meta",
            )),
            (_, Some(session)) => self
                .legacy_in_session(session, method, params, envelope)
                .unwrap_or_else(Route::Refuse),
        }
    }

    fn legacy_in_session(
        &self,
        session: &Session,
        method: String,
        params: Option<Raw>,
        envelope: &Envelope,
    ) -> Result<Route, RpcError> {
        let offered = self.handler.about().offered();
        if !offered.allows(&method) {
            return Err(fault::method_not_found(&method));
        }
        let request = Request { method, params, era: Era::Legacy, version: session.version };
        match request.method.as_str() {
            method::SET_LEVEL => session.set_level(request.read::<SetLevel>()?.level),
            method::SUBSCRIBE => {
                if !session.follow(request.read::<Uri>()?.uri) {
                    return Err(fault::invalid_params("this session follows too many resources"));
                }
            }
            method::UNSUBSCRIBE => session.unfollow(&request.read::<Uri>()?.uri),
            _ => {
                return Ok(Route::Handle(Box::new(Job {
                    request,
                    token: envelope.token(),
                    level: offered.logging().then(|| session.level()),
                    capabilities: session.capabilities.clone(),
                    client_info: session.client_info.clone(),
                    asking: Asking::new(Way::Requests(Arc::clone(&session.requests), self.answer)),
                })));
            }
        }
        Ok(Route::Answer(Raw::empty_object()))
    }

    fn rounds(&self, method: &str, params: Option<&Raw>) -> Asking {
        let way = if method::may_ask_for_input(method) {
            let key = Arc::clone(&self.state_key);
            let most = self.limits.judged_values;
            Way::Rounds(Arc::new(Rounds::new(method, params.cloned(), key, most)))
        } else {
            Way::Impossible
        };
        Asking::new(way)
    }

    fn start(&self, params: Option<&Raw>) -> Route {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Initialize {
            capabilities: Option<Raw>,
            client_info: Option<Raw>,
        }
        let asked = requested(params);
        let version = Version::parse(&asked)
            .filter(|version| version.era() == Era::Legacy)
            .unwrap_or(Version::LEGACY);
        let Some(client) = params.and_then(|raw| raw.read::<Initialize>().ok()) else {
            return Route::Refuse(fault::invalid_params(
                "initialize needs protocolVersion, capabilities and clientInfo",
            ));
        };
        let capabilities = client.capabilities.unwrap_or_else(Raw::empty_object);
        let Some(session) = Session::new(version, capabilities, client.client_info) else {
            return Route::Refuse(fault::invalid_params(
                "capabilities and clientInfo are too long",
            ));
        };
        Route::Start(Box::new(session), greeting(&self.handler.about(), version))
    }

    /// Runs the handler. A panic becomes an error and stays in this request, and so does a handler
    /// that never ends.
    pub(crate) async fn run(&self, request: Request, peer: Peer) -> Result<Raw, RpcError> {
        let (method, era) = (request.method.clone(), request.era);
        let rounds = match &peer.asking.way {
            Way::Rounds(rounds) => Some(Arc::clone(rounds)),
            Way::Impossible | Way::Requests(..) => None,
        };
        let handled = AssertUnwindSafe(async { self.handler.handle(request, peer).await });
        let handled = async {
            handled.catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!(method, "a handler panicked");
                Err(fault::internal("the server failed while it handled this request"))
            })
        };
        let ended = async {
            let Some(rounds) = &rounds else { return handled.await };
            tokio::select! {
                biased;
                reply = handled => reply,
                () = rounds.asked() => rounds.input_required().map(Reply::Plain),
            }
        };
        let reply = timeout(self.request, ended).await.unwrap_or_else(|_| {
            tracing::error!(method, "a handler took too long");
            let most = self.request.as_millis();
            Err(fault::internal(format!("the server took longer than {most} ms, its limit")))
        })?;
        match reply {
            Reply::Complete(raw) => Ok(raw),
            Reply::Plain(raw) => {
                let mut about = self.handler.about();
                if rounds.is_some_and(|rounds| rounds.is_answered()) {
                    // Made from answers of one client, it is nothing to keep (server/caching).
                    let (ttl_ms, cache_scope) = (0, CacheScope::Private);
                    about = Arc::new(ServerAbout { ttl_ms, cache_scope, ..(*about).clone() });
                }
                complete(&raw, &method, era, &about)
            }
        }
    }
}

/// The result of `method` as `era` wants it: a legacy one as it is, a modern one with what it lacks
/// of `resultType`, `ttlMs`, `cacheScope` and `serverInfo`.
///
/// # Errors
/// It is no object.
pub fn complete(
    result: &Raw,
    method: &str,
    era: Era,
    about: &ServerAbout,
) -> Result<Raw, RpcError> {
    if !result.is_object() {
        tracing::error!(method, "a handler's result is no object");
        return Err(fault::internal("the server made a result that is no object"));
    }
    if era == Era::Legacy {
        return Ok(result.clone());
    }
    let cacheable = matches!(
        method,
        method::DISCOVER
            | method::TOOLS_LIST
            | method::RESOURCES_LIST
            | method::TEMPLATES_LIST
            | method::PROMPTS_LIST
            | method::RESOURCES_READ
    ) && splice::string_member(result, "resultType")
        .is_none_or(|kind| kind == "complete");
    let mut members = vec![("resultType", "\"complete\"".to_owned())];
    if cacheable {
        members.push(("ttlMs", about.ttl_ms.to_string()));
        members.push(("cacheScope", written(&about.cache_scope)?));
    }
    splice::complete(result, &members, &[(meta::SERVER_INFO, written(&about.server_info())?)])
        .ok_or_else(|| fault::internal("the server made a result that cannot be read"))
}

fn written(value: &impl Serialize) -> Result<String, RpcError> {
    serde_json::to_string(value).map_err(|error| fault::internal(error.to_string()))
}

fn discovery(about: &ServerAbout) -> Raw {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovery<'a> {
        supported_versions: Vec<&'static str>,
        capabilities: &'a Raw,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<&'a str>,
    }
    Raw::of(&Discovery {
        supported_versions: modern_versions(),
        capabilities: &about.capabilities,
        instructions: about.instructions.as_deref(),
    })
}

fn greeting(about: &ServerAbout, version: Version) -> Raw {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Greeting<'a> {
        protocol_version: &'static str,
        capabilities: &'a Raw,
        server_info: Info<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<&'a str>,
    }
    Raw::of(&Greeting {
        protocol_version: version.as_str(),
        capabilities: &about.capabilities,
        server_info: about.server_info(),
        instructions: about.instructions.as_deref(),
    })
}

#[derive(Deserialize)]
struct SetLevel {
    level: LogLevel,
}

#[derive(Deserialize)]
struct Uri {
    uri: String,
}

/// `params.protocolVersion` of an `initialize`; empty when it is not there.
fn requested(params: Option<&Raw>) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Version {
        protocol_version: String,
    }
    params
        .and_then(|raw| raw.read::<Version>().ok())
        .map(|version| version.protocol_version)
        .unwrap_or_default()
}

/// `params.notifications` of a listen request.
fn asked(params: Option<&Raw>) -> Result<Filter, RpcError> {
    #[derive(Deserialize)]
    struct Listen {
        notifications: Filter,
    }
    let params = params.ok_or_else(|| fault::invalid_params("notifications is missing"))?;
    let filter = params.read::<Listen>().map_err(fault::invalid_params)?.notifications;
    match filter.is_modest() {
        true => Ok(filter),
        false => Err(fault::invalid_params("this stream follows too many resources")),
    }
}
