//! Reads of response heads and bodies, each within a bound, and what an error status said.
//!
//! Nothing is ever decompressed: we ask for no compression, and what comes compressed anyway is
//! refused unread.

use std::time::Duration;

use reqwest::{
    Response,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, RETRY_AFTER, WWW_AUTHENTICATE},
};
use tokio::time::{Instant, timeout_at};
use toolcrib_core::{
    rpc::{Decoded, Message, RpcError, sse::SseDecoder},
    sanitise,
};

use crate::channel::{ExchangeError, StatusError};

/// How much of an error's body is read.
const ERROR_BYTES: usize = 1 << 20;
/// How long reading an error's body may take.
const ERROR_TIME: Duration = Duration::from_secs(5);
/// How much of an unwanted body is read so that its connection can be used again.
const DISCARD_BYTES: usize = 16 << 10;
/// How long that may take.
const DISCARD_TIME: Duration = Duration::from_millis(100);
/// Longest challenge kept, in characters.
const CHALLENGE_CHARS: usize = 2_000;

/// The media type without parameters, in lower case; empty when there is none.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let essence = text.as_deref().unwrap_or_default().split(';').next().unwrap_or_default();
    sanitise::line(essence, 80).to_ascii_lowercase()
}

/// True when the body is an event stream.
pub(super) fn is_event_stream(response: &Response) -> bool {
    media_type(response.headers()) == "text/event-stream"
}

/// Fails when the body is compressed.
pub(super) fn check_encoding(response: &Response) -> Result<(), ExchangeError> {
    let encoding = response.headers().get(CONTENT_ENCODING);
    let encoding = encoding.map(|value| String::from_utf8_lossy(value.as_bytes()));
    match encoding.as_deref().map(str::trim) {
        None | Some("" | "identity") => Ok(()),
        Some(encoding) => Err(ExchangeError::NotRpc {
            content_type: media_type(response.headers()),
            excerpt: format!(
                "the body is compressed ({}), which was not asked for",
                sanitise::line(encoding, 40)
            ),
        }),
    }
}

/// The whole body, at most `limit` bytes.
pub(super) async fn read(mut response: Response, limit: usize) -> Result<Vec<u8>, ExchangeError> {
    let too_long = ExchangeError::TooLong { limit };
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(too_long);
    }
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > limit => return Err(too_long),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) => return Err(ExchangeError::Io(broken(&error))),
        }
    }
}

/// The body as far as it comes within a size and a time; never fails.
async fn read_some(response: &mut Response, bytes: usize, time: Duration) -> Vec<u8> {
    let deadline = Instant::now() + time;
    let mut body = Vec::new();
    while body.len() < bytes {
        match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
            _ => break,
        }
    }
    body.truncate(bytes);
    body
}

/// Lets go of a body nobody wants.
pub(super) async fn discard(mut response: Response) {
    read_some(&mut response, DISCARD_BYTES, DISCARD_TIME).await;
}

/// What a response with an error status said; reads its body.
pub(super) async fn refusal(
    mut response: Response,
    had_session: bool,
    excerpt_chars: usize,
) -> StatusError {
    let status = response.status().as_u16();
    let content_type = media_type(response.headers());
    let challenge = challenge(response.headers());
    let retry_after = retry_after(response.headers());
    let compressed = check_encoding(&response).is_err();
    let body = if compressed {
        Vec::new()
    } else {
        read_some(&mut response, ERROR_BYTES, ERROR_TIME).await
    };
    let text = if content_type == "text/event-stream" {
        first_data(&body)
    } else {
        String::from_utf8_lossy(&body).into_owned()
    };
    StatusError {
        status,
        content_type,
        excerpt: sanitise::line(&text, excerpt_chars),
        rpc: rpc_error(&text),
        challenge,
        had_session,
        retry_after,
    }
}

/// The JSON-RPC error in a body, whatever its media type says. An error without a code is some
/// other protocol's.
fn rpc_error(text: &str) -> Option<RpcError> {
    let messages = match Decoded::read(text) {
        Decoded::Message(message) => vec![message],
        Decoded::Batch(messages, _) => messages,
        Decoded::Noise(_) => return None,
    };
    messages.into_iter().find_map(|message| match message {
        Message::Response { outcome: Err(error), .. } => {
            Some(error).filter(|error| error.code != 0)
        }
        _ => None,
    })
}

/// The data of the first event that has any.
fn first_data(body: &[u8]) -> String {
    let mut decoder = SseDecoder::new(ERROR_BYTES);
    let mut events = Vec::new();
    // Too long cannot be: the body is within the same bound.
    let _ = decoder.push(body, &mut events);
    events.extend(decoder.finish());
    events.into_iter().map(|event| event.data).find(|data| !data.is_empty()).unwrap_or_default()
}

fn challenge(headers: &HeaderMap) -> Option<String> {
    let all: Vec<_> = headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    (!all.is_empty()).then(|| sanitise::line(&all.join(", "), CHALLENGE_CHARS))
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Why a body or a request broke off: the innermost cause, which is the one that says something.
pub(super) fn broken(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    sanitise::line(&innermost.to_string(), 300)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_with_a_code_are_json_rpc() {
        let check = |text: &str, code: Option<i64>| {
            assert_eq!(rpc_error(text).map(|error| error.code), code, "{text}");
        };
        check(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x"}}"#, Some(-32000));
        check(
            r#"{"error":{"code":-32600,"message":"Missing session ID"},"id":null}"#,
            Some(-32600),
        );
        check(r#"[{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}]"#, Some(-1));
        check(r#"{"error":"invalid_token","error_description":"expired"}"#, None);
        check(r#"{"error":{"message":"no code"}}"#, None);
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, None);
        check("<html>", None);
    }

    #[test]
    fn an_error_in_an_event_stream_is_found() {
        assert_eq!(first_data(b": hi\n\nid: 1\ndata:\n\ndata: {}\n\n"), "{}");
    }
}
