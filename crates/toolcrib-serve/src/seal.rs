//! Seals the state a client carries for us between two rounds of one request.
//!
//! The client can read it and cannot change it: it holds what the client itself answered and what
//! the server noted, under an HMAC-SHA-256. Nothing is kept here.

use std::{
    fmt, io,
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

/// How long a sealed state can be used, in seconds.
const LIFETIME_S: u64 = 3_600;

/// The key that `requestState` is sealed with (specification, basic/patterns/mrtr).
///
/// Without one every endpoint makes its own. Replicas that answer for each other need the same.
#[derive(Clone)]
pub struct StateKey([u8; 32]);

impl StateKey {
    /// A key of 32 random bytes that every replica has.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Seals `content`, to be opened for the same `purpose` only.
    pub(crate) fn seal(&self, purpose: &str, content: &impl Serialize) -> String {
        let until = now_s().saturating_add(LIFETIME_S);
        let text = serde_json::to_vec(&Sealed { until, content }).unwrap_or_default();
        let tag = self.mac(purpose, &text).finalize().into_bytes();
        format!("{}.{}", URL_SAFE_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(tag))
    }

    /// Opens what [`StateKey::seal`] made.
    ///
    /// # Errors
    /// It was changed, belongs to something else, or is too old.
    pub(crate) fn open<T: DeserializeOwned>(
        &self,
        purpose: &str,
        sealed: &str,
    ) -> Result<T, &'static str> {
        const BROKEN: &str = "it is not as it was given out, or not for this request";
        let (text, tag) = sealed.split_once('.').ok_or(BROKEN)?;
        let text = URL_SAFE_NO_PAD.decode(text).map_err(|_| BROKEN)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| BROKEN)?;
        self.mac(purpose, &text).verify_slice(&tag).map_err(|_| BROKEN)?;
        let Sealed { until, content } = serde_json::from_slice(&text).map_err(|_| BROKEN)?;
        if until < now_s() { Err("it is too old; start the request again") } else { Ok(content) }
    }

    fn mac(&self, purpose: &str, text: &[u8]) -> Hmac<Sha256> {
        // A fixed-length digest in front, so that no purpose can run into the text.
        let mut block = [0; 64];
        block[..self.0.len()].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(&Sha256::digest(purpose));
        mac.update(text);
        mac
    }
}

/// The key of one endpoint: as it was given, or made on first use.
#[derive(Debug, Default)]
pub(crate) struct StateKeeping(OnceLock<StateKey>);

impl StateKeeping {
    pub(crate) fn new(key: Option<StateKey>) -> Self {
        Self(key.map_or_else(OnceLock::new, OnceLock::from))
    }

    /// The key.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub(crate) fn get(&self) -> io::Result<StateKey> {
        if let Some(key) = self.0.get() {
            return Ok(key.clone());
        }
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(self.0.get_or_init(|| StateKey::new(bytes)).clone())
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateKey(***)")
    }
}

#[derive(Serialize, Deserialize)]
struct Sealed<T> {
    /// Seconds since the epoch.
    until: u64,
    content: T,
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_for_the_same_purpose_is_opened() {
        let key = StateKey::new([7; 32]);
        let sealed = key.seal("tools/call a", &["x"]);
        assert_eq!(key.open::<Vec<String>>("tools/call a", &sealed), Ok(vec!["x".to_owned()]));
        assert!(key.open::<Vec<String>>("tools/call b", &sealed).is_err());
        assert!(StateKey::new([8; 32]).open::<Vec<String>>("tools/call a", &sealed).is_err());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(key.open::<Vec<String>>("tools/call a", &changed).is_err(), "{at}");
        }
        for odd in ["", ".", "a.b", "\u{0}", &sealed[..sealed.len() - 1], &format!("{sealed}A")] {
            assert!(key.open::<Vec<String>>("tools/call a", odd).is_err(), "{odd}");
        }
        assert!(!format!("{key:?}").contains('7'));
    }
}
