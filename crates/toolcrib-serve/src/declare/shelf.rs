//! The items of one list, and its pages as text made once per change.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::{Arc, Mutex},
};

use toolcrib_core::{raw::Raw, rpc::RpcError, version::Era};

use crate::{about::ServerAbout, fault, lock::lock, service::complete};

/// What can stand in a list.
pub(crate) trait Shelved: Send + Sync + 'static {
    /// What one of them is called.
    const KIND: &'static str;
    /// The method that lists them, and the member its answer has them in.
    const LIST: (&'static str, &'static str);

    /// What tells it from its neighbours.
    fn key(&self) -> &str;

    /// Its definition.
    fn definition(&self, era: Era) -> &Raw;
}

/// The items of one list. A cursor is the number of the last item of a page: numbers only grow, so
/// it stays good whatever is added or removed meanwhile.
pub(crate) struct Shelf<T> {
    next: u64,
    items: BTreeMap<u64, Arc<T>>,
    numbers: HashMap<String, u64>,
    pages: Mutex<HashMap<(Era, u64), Raw>>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { next: 1, items: BTreeMap::new(), numbers: HashMap::new(), pages: Mutex::default() }
    }
}

impl<T> Clone for Shelf<T> {
    /// The same items; pages are written anew.
    fn clone(&self) -> Self {
        Self {
            next: self.next,
            items: self.items.clone(),
            numbers: self.numbers.clone(),
            pages: Mutex::default(),
        }
    }
}

impl<T: Shelved> Shelf<T> {
    /// Adds an item; false when its key is taken.
    pub(crate) fn add(&mut self, item: T) -> bool {
        match self.numbers.entry(item.key().to_owned()) {
            Entry::Occupied(_) => return false,
            Entry::Vacant(free) => free.insert(self.next),
        };
        self.items.insert(self.next, Arc::new(item));
        self.next += 1;
        self.pages = Mutex::default();
        true
    }

    /// Takes an item away; false when it is not there.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let Some(number) = self.numbers.remove(key) else { return false };
        self.items.remove(&number);
        self.pages = Mutex::default();
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<T>> {
        self.numbers.get(key).and_then(|number| self.items.get(number))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.items.values()
    }

    /// The page after `cursor`, ready to be sent.
    ///
    /// # Errors
    /// The cursor is none of this list.
    pub(crate) fn page(
        &self,
        cursor: Option<&str>,
        size: usize,
        era: Era,
        about: &ServerAbout,
    ) -> Result<Raw, RpcError> {
        let after = match cursor {
            None => 0,
            Some(text) => text
                .parse()
                .ok()
                .filter(|number| (1..self.next).contains(number))
                .ok_or_else(|| fault::invalid_params(format!("unknown cursor {text:?}")))?,
        };
        if let Some(page) = lock(&self.pages).get(&(era, after)) {
            return Ok(page.clone());
        }
        let page = complete(&self.write(after, size, era)?, T::LIST.0, era, about)?;
        // Others than the cursors given out are answered, and not kept.
        if after == 0 || self.ends_page(after, size) {
            lock(&self.pages).insert((era, after), page.clone());
        }
        Ok(page)
    }

    fn ends_page(&self, number: u64, size: usize) -> bool {
        self.items.keys().skip(size - 1).step_by(size).any(|end| *end == number)
    }

    fn write(&self, after: u64, size: usize, era: Era) -> Result<Raw, RpcError> {
        let mut rest = self.items.range(after + 1..);
        let mut text = format!("{{\"{}\":[", T::LIST.1);
        let mut last = after;
        for (index, (number, item)) in rest.by_ref().take(size).enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(item.definition(era).get());
            last = *number;
        }
        text.push(']');
        if rest.next().is_some() {
            text.push_str(&format!(",\"nextCursor\":\"{last}\""));
        }
        text.push('}');
        Raw::parse(text).map_err(|error| fault::internal(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use toolcrib_core::rpc::method;

    use super::*;
    use crate::about::CacheScope;

    struct Word(&'static str, Raw);

    impl Shelved for Word {
        const KIND: &'static str = "word";
        const LIST: (&'static str, &'static str) = (method::TOOLS_LIST, "tools");

        fn key(&self) -> &str {
            self.0
        }

        fn definition(&self, _: Era) -> &Raw {
            &self.1
        }
    }

    fn about() -> ServerAbout {
        ServerAbout {
            name: "n".to_owned(),
            version: "1".to_owned(),
            title: None,
            instructions: None,
            capabilities: Raw::empty_object(),
            ttl_ms: 7,
            cache_scope: CacheScope::Public,
        }
    }

    fn walk(shelf: &Shelf<Word>, from: Option<&str>, size: usize) -> Vec<String> {
        let (mut cursor, mut found) = (from.map(str::to_owned), Vec::new());
        loop {
            let page = shelf.page(cursor.as_deref(), size, Era::Modern, &about()).unwrap();
            let page: Value = page.read().unwrap();
            assert_eq!(page["ttlMs"], 7);
            let items = page["tools"].as_array().unwrap();
            found.extend(items.iter().map(|item| item.as_str().unwrap().to_owned()));
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return found,
            }
        }
    }

    #[test]
    fn a_walk_meets_every_item_whatever_changes_meanwhile() {
        let words = ["a", "b", "c", "d", "e"];
        let mut shelf = Shelf::default();
        for word in words {
            assert!(shelf.add(Word(word, Raw::of(&word))));
        }
        for size in 1..=6 {
            assert_eq!(walk(&shelf, None, size), words, "{size}");
            // The second time from what was kept.
            assert_eq!(walk(&shelf, None, size), words, "{size}");
        }
        let mut changed = shelf.clone();
        assert!(changed.remove("b") && changed.add(Word("f", Raw::of(&"f"))));
        assert_eq!(walk(&changed, Some("2"), 2), ["c", "d", "e", "f"]);
        assert_eq!(walk(&shelf, None, 2), words, "a copy is a copy");
        assert!(!changed.remove("b") && !changed.add(Word("a", Raw::of(&"a"))));
        for odd in ["", "0", "7", "-1", "x", "99999999999999999999"] {
            assert!(changed.page(Some(odd), 2, Era::Modern, &about()).is_err(), "{odd}");
        }
    }
}
