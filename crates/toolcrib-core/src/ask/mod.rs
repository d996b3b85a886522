//! What a server may ask its client for while it works on a request: input of a person (elicitation,
//! as a form or a URL), a model's answer (sampling) and folders (roots); and what is answered.
//!
//! Typed views of requests, from the text as sent, and the text of answers. Whether and by whom a
//! request is answered is decided elsewhere; nothing here fills anything in.

mod form;
mod question;

pub use form::{Choice, Field, FieldKind, Form, FormError};
pub use question::{
    Elicited, FormQuestion, Question, QuestionError, Root, Sampled, SamplingQuestion, UrlQuestion,
};
