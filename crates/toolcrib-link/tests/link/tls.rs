//! HTTPS against a server with a certificate made for the test.

use std::{path::PathBuf, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    RootCertStore, ServerConfig, crypto::ring, pki_types::PrivateKeyDer,
    server::WebPkiClientVerifier,
};
use tokio::{sync::mpsc, time::timeout};
use toolcrib_core::{limits::Limits, target::Endpoint};
use toolcrib_link::{
    channel::{INBOX, Inbound},
    http::{SetupError, Streamable},
};

use crate::{
    http::{SECOND, legacy, result},
    web::{Reply, Web},
};

/// An authority and the files a client needs.
struct World {
    authority: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { authority, folder: tempfile::tempdir().unwrap() }
    }

    fn signed(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.authority).unwrap(), key)
    }

    fn server(&self, ask_client: bool) -> ServerConfig {
        let (certificate, key) = self.signed("127.0.0.1");
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if ask_client {
            let mut roots = RootCertStore::empty();
            roots.add(self.authority.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        builder.with_single_cert(vec![certificate.der().clone()], key).unwrap()
    }

    fn file(&self, name: &str, text: &str) -> Option<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    }
}

/// What one request comes to, in words.
async fn ask(endpoint: &Endpoint) -> String {
    let (sender, mut inbox) = mpsc::channel(INBOX);
    let http = Streamable::new(endpoint, &Limits::default(), None, sender).unwrap();
    http.send(legacy(1, "tools/list")).await.unwrap();
    match timeout(10 * SECOND, inbox.recv()).await.expect("in time").expect("open") {
        Inbound::Message { .. } => "answered".to_owned(),
        Inbound::RequestFailed { error, .. } => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_private_authority_is_trusted_only_when_configured() {
    let world = World::new();
    let web = Web::start_tls(world.server(false), |request, _| Reply::json(result(request))).await;
    let mut endpoint = Endpoint::new(web.url());
    let error = ask(&endpoint).await;
    assert!(error.contains("UnknownIssuer") && error.contains("set ca_file"), "{error}");
    assert!(web.seen().is_empty());
    endpoint.ca_file = world.file("ca.pem", &world.authority.pem());
    assert_eq!(ask(&endpoint).await, "answered");
}

#[tokio::test]
async fn a_client_certificate_is_shown_when_configured() {
    let world = World::new();
    let web = Web::start_tls(world.server(true), |request, _| Reply::json(result(request))).await;
    let mut endpoint = Endpoint::new(web.url());
    endpoint.ca_file = world.file("ca.pem", &world.authority.pem());
    assert_ne!(ask(&endpoint).await, "answered");
    let (certificate, key) = world.signed("client.example");
    let pem = format!("{}{}", certificate.pem(), key.serialize_pem());
    endpoint.client_cert_file = world.file("client.pem", &pem);
    assert_eq!(ask(&endpoint).await, "answered");
}

#[test]
fn files_that_hold_no_certificate_are_named() {
    let world = World::new();
    let check = |ca: Option<PathBuf>, client: Option<PathBuf>, expect: &str| {
        let mut endpoint = Endpoint::new("https://127.0.0.1:9/");
        (endpoint.ca_file, endpoint.client_cert_file) = (ca, client);
        let (sender, _inbox) = mpsc::channel(INBOX);
        let error = Streamable::new(&endpoint, &Limits::default(), None, sender).err().unwrap();
        assert!(matches!(error, SetupError::File { .. }), "{error:?}");
        assert!(error.to_string().contains(expect), "{error}");
    };
    let none = || Some(world.folder.path().join("none.pem"));
    check(none(), None, "none.pem: No such file");
    check(world.file("a.pem", "text"), None, "a.pem: it holds no PEM certificate");
    check(None, none(), "the client certificate file");
    check(None, world.file("b.pem", &world.authority.pem()), "b.pem: ");
}
