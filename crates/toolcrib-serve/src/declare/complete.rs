//! Completes arguments of prompts and variables of templates.

use std::{collections::BTreeMap, fmt, pin::Pin, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, json};

/// Most values one answer may hold (specification, server/utilities/completion).
const MOST: usize = 100;

/// What is to be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completing {
    /// What was typed so far.
    pub value: String,
    /// The arguments that are settled already.
    pub arguments: BTreeMap<String, String>,
}

type Completed = Pin<Box<dyn Future<Output = Vec<String>> + Send>>;

/// What completes each argument.
#[derive(Clone, Default)]
pub(crate) struct Completers(BTreeMap<String, Arc<dyn Fn(Completing) -> Completed + Send + Sync>>);

impl fmt::Debug for Completers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Completers {
    /// Lets `function` complete an argument.
    pub(crate) fn set<Fut>(
        &mut self,
        argument: &str,
        function: impl Fn(Completing) -> Fut + Send + Sync + 'static,
    ) where
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.0.insert(argument.to_owned(), Arc::new(move |asked| Box::pin(function(asked))));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The arguments that are completed.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The `completion` of an answer; without values for an argument nobody completes.
    pub(crate) async fn complete(&self, argument: &str, asked: Completing) -> Value {
        let mut values = match self.0.get(argument) {
            Some(function) => function(asked).await,
            None => Vec::new(),
        };
        let total = values.len();
        values.truncate(MOST);
        json!({ "values": values, "total": total, "hasMore": total > MOST })
    }
}

/// Parameters of `completion/complete`.
#[derive(Debug, Deserialize)]
pub(crate) struct Complete {
    #[serde(rename = "ref")]
    pub(crate) reference: Reference,
    pub(crate) argument: Argument,
    #[serde(default)]
    pub(crate) context: Settled,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(crate) enum Reference {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Template { uri: String },
}

#[derive(Debug, Deserialize)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Settled {
    pub(crate) arguments: BTreeMap<String, String>,
}
