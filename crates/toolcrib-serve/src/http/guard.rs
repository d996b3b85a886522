//! Refuses requests that a web page could have been tricked into: a foreign `Origin` or `Host`.
//!
//! This is no authentication; it keeps a browser on this machine from being used against it.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, StatusCode, header, uri::Authority},
    middleware::Next,
    response::Response,
};

use super::{Endpoint, HttpOptions, reply};
use crate::fault;

pub(crate) async fn guard(
    State(endpoint): State<Arc<Endpoint>>,
    request: Request,
    next: Next,
) -> Response {
    match check(request.headers(), request.uri().authority(), &endpoint.options) {
        Ok(()) => next.run(request).await,
        Err(why) => reply::refuse(StatusCode::FORBIDDEN, None, &fault::invalid_request(why)),
    }
}

fn check(
    headers: &HeaderMap,
    authority: Option<&Authority>,
    options: &HttpOptions,
) -> Result<(), &'static str> {
    let host = match authority {
        Some(authority) => Some(authority.as_str()),
        None => single(headers, &header::HOST),
    };
    let known = |name: &str| is_loopback(name) || options.hosts.iter().any(|host| host == name);
    if !host.and_then(host_name).is_some_and(known) {
        return Err("this Host is not served here");
    }
    if headers.contains_key(header::ORIGIN) {
        let allowed = single(headers, &header::ORIGIN).is_some_and(|origin| {
            options.origins.iter().any(|known| known == origin) || is_loopback_origin(origin)
        });
        if !allowed {
            return Err("this Origin is not served here");
        }
    }
    Ok(())
}

/// The value of a header that occurs exactly once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn host_name(authority: &str) -> Option<&str> {
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    };
    (!name.contains('@')).then_some(name)
}

fn is_loopback(name: &str) -> bool {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_loopback_origin(origin: &str) -> bool {
    origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"))
        .and_then(host_name)
        .is_some_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_listed_names_are_served() {
        let options = HttpOptions {
            hosts: vec!["box.lan".to_owned()],
            origins: vec!["https://app.example".to_owned()],
            ..HttpOptions::default()
        };
        let check = |host: &'static str, origin: Option<&'static str>, expect: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(check(&headers, None, &options).is_ok(), expect, "{host} {origin:?}");
        };
        check("localhost:80", None, true);
        check("127.0.0.1", None, true);
        check("[::1]:8080", Some("http://[::1]:99"), true);
        check("box.lan:1", Some("https://app.example"), true);
        check("evil.example", None, false);
        check("localhost.evil.example:80", None, false);
        check("x@localhost", None, false);
        check("", None, false);
        check("localhost", Some("http://evil.example"), false);
        check("localhost", Some("http://localhost.evil.example"), false);
        check("localhost", Some("http://localhost@evil.example"), false);
        check("localhost", Some("null"), false);
        check("localhost", Some("http://localhost:3000"), true);
    }
}
