//! Resource templates (RFC 6570): expansion by a library, matching by a matcher of ours.
//!
//! Matching takes time linear in template × URI, whatever the two say, and only ever returns
//! variables that expand back to exactly the URI that was asked for. It never decides whether a
//! value is harmless: `..` is a value like any other.

use std::{collections::BTreeMap, fmt::Write as _};

use iri_string::{
    spec::UriSpec,
    template::{
        UriTemplateStr,
        simple_context::{SimpleContext, Value},
    },
};
use thiserror::Error;

/// Longest template read, in bytes.
const TEMPLATE_BYTES: usize = 2_048;
/// Most variables one template may use, counting each use.
const TEMPLATE_VARIABLES: usize = 64;
/// Longest URI matched, in bytes.
const URI_BYTES: usize = 8_192;

/// Why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// Longer than we read.
    #[error("the URI template is longer than {TEMPLATE_BYTES} bytes")]
    TooLong,
    /// More variables than we match.
    #[error("the URI template uses more than {TEMPLATE_VARIABLES} variables")]
    TooManyVariables,
    /// Not RFC 6570.
    #[error("not a URI template (RFC 6570): {0}")]
    Syntax(String),
    /// A value cannot be put into it.
    #[error("the URI template cannot be expanded: {0}")]
    Expansion(String),
}

/// A parsed URI template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    /// As written.
    text: String,
    /// With literals outside ASCII percent-encoded, as the library wants them.
    encoded: String,
    parts: Vec<Part>,
    variables: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Characters as they stand in an expanded URI.
    Literal(String),
    Expression(Operator, Vec<Variable>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    modifier: Modifier,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Modifier {
    None,
    Explode,
    Prefix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Parameter,
    Query,
    Continuation,
}

impl Operator {
    /// Splits an expression's body into its operator and its variable list.
    fn split(body: &str) -> (Self, &str) {
        let operator = match body.as_bytes().first() {
            Some(b'+') => Self::Reserved,
            Some(b'#') => Self::Fragment,
            Some(b'.') => Self::Label,
            Some(b'/') => Self::Path,
            Some(b';') => Self::Parameter,
            Some(b'?') => Self::Query,
            Some(b'&') => Self::Continuation,
            _ => return (Self::Simple, body),
        };
        (operator, &body[1..])
    }

    /// What stands before the first defined variable.
    const fn first(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved => "",
            Self::Fragment => "#",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameter => ";",
            Self::Query => "?",
            Self::Continuation => "&",
        }
    }

    /// What stands before each further defined variable.
    const fn separator(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ",",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameter => ";",
            Self::Query | Self::Continuation => "&",
        }
    }

    /// What joins the items of an exploded variable inside a value of ours.
    const fn joint(self) -> char {
        match self {
            Self::Label => '.',
            Self::Path => '/',
            _ => ',',
        }
    }

    const fn is_named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::Continuation)
    }

    const fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }

    /// True where the expression stands for nothing when no variable is given. `{x}` and `{+x}`
    /// would make `users:///profile` match `users://{id}/profile`, so they must hold something.
    const fn may_be_absent(self) -> bool {
        !matches!(self, Self::Simple | Self::Reserved)
    }

    /// True when `byte` may stand in a value, percent triplets apart.
    fn admits(self, byte: u8, exploded: bool) -> bool {
        if is_unreserved(byte) || (self.keeps_reserved() && is_reserved(byte)) {
            return true;
        }
        exploded
            && match self {
                Self::Simple => byte == b',',
                Self::Path => byte == b'/',
                Self::Parameter => matches!(byte, b';' | b'='),
                Self::Query | Self::Continuation => matches!(byte, b'&' | b'='),
                _ => false,
            }
    }
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn is_reserved(byte: u8) -> bool {
    b":/?#[]@!$&'()*+,;=".contains(&byte)
}

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// The text is no RFC 6570 template, or beyond the bounds.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.len() > TEMPLATE_BYTES {
            return Err(TemplateError::TooLong);
        }
        let encoded = encode_literals(text)?;
        UriTemplateStr::new(&encoded).map_err(|error| TemplateError::Syntax(error.to_string()))?;
        let mut parts = Vec::new();
        let mut rest = encoded.as_str();
        let mut uses = 0;
        while !rest.is_empty() {
            let literal_end = rest.find('{').unwrap_or(rest.len());
            if literal_end > 0 {
                parts.push(Part::Literal(expanded(&rest[..literal_end], &SimpleContext::new())?));
            }
            let Some((body, after)) =
                rest.get(literal_end + 1..).and_then(|tail| tail.split_once('}'))
            else {
                break;
            };
            let (operator, list) = Operator::split(body);
            let variables = list.split(',').map(variable).collect::<Result<Vec<_>, _>>()?;
            uses += variables.len();
            parts.push(Part::Expression(operator, variables));
            rest = after;
        }
        if uses > TEMPLATE_VARIABLES {
            return Err(TemplateError::TooManyVariables);
        }
        let mut names = Vec::new();
        for part in &parts {
            let Part::Expression(_, list) = part else { continue };
            for variable in list {
                if !names.contains(&variable.name) {
                    names.push(variable.name.clone());
                }
            }
        }
        Ok(Self { text: text.to_owned(), encoded, parts, variables: names })
    }

    /// The template as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its variables, each once, in order of first use.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The URI these values make. Variables without a value are left out as RFC 6570 says; an
    /// exploded one (`{/path*}`) is a list, its items joined by `/` (path), `.` (label) or `,`.
    ///
    /// # Errors
    /// The library refuses a value.
    pub fn expand(&self, values: &BTreeMap<String, String>) -> Result<String, TemplateError> {
        let mut context = SimpleContext::new();
        for (operator, variable) in self.uses() {
            let Some(value) = values.get(&variable.name) else { continue };
            let value = match variable.modifier {
                Modifier::Explode => {
                    Value::List(value.split(operator.joint()).map(str::to_owned).collect())
                }
                // A list would lose to a plain use of the same variable; the first use decides.
                _ => Value::String(value.clone()),
            };
            if !self.is_exploded_before(variable) {
                context.insert(variable.name.clone(), value);
            }
        }
        expanded(&self.encoded, &context)
    }

    fn uses(&self) -> impl Iterator<Item = (Operator, &Variable)> {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Literal(_) => None,
                Part::Expression(operator, list) => Some((*operator, list)),
            })
            .flat_map(|(operator, list)| list.iter().map(move |variable| (operator, variable)))
    }

    /// True when an earlier use than this one made the variable a list.
    fn is_exploded_before(&self, variable: &Variable) -> bool {
        self.uses()
            .take_while(|(_, other)| !std::ptr::eq(*other, variable))
            .any(|(_, other)| other.name == variable.name && other.modifier == Modifier::Explode)
    }

    /// The values that expand to exactly `uri`, or `None`. Values are percent-decoded; where
    /// several readings are possible, an earlier variable takes as much as it can.
    pub fn match_uri(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        if uri.len() > URI_BYTES {
            return None;
        }
        let values = Matcher::new(self, uri).values()?;
        (self.expand(&values).ok()? == uri).then_some(values)
    }
}

fn expanded(text: &str, context: &SimpleContext) -> Result<String, TemplateError> {
    let template =
        UriTemplateStr::new(text).map_err(|error| TemplateError::Syntax(error.to_string()))?;
    template
        .expand::<UriSpec, _>(context)
        .map(|expanded| expanded.to_string())
        .map_err(|error| TemplateError::Expansion(error.to_string()))
}

/// Percent-encodes what is outside ASCII in the literal parts. Inside an expression it is an error;
/// the library is never shown such text, nor a stray `%` before it, which it would slice apart.
fn encode_literals(text: &str) -> Result<String, TemplateError> {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        match c {
            '{' => inside = true,
            '}' => inside = false,
            c if c.is_ascii() => {}
            _ if inside => {
                let what = "a variable name has a character outside ASCII";
                return Err(TemplateError::Syntax(what.to_owned()));
            }
            c => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "%{byte:02X}");
                }
                continue;
            }
        }
        out.push(c);
    }
    Ok(out)
}

fn variable(spec: &str) -> Result<Variable, TemplateError> {
    let (name, modifier) = match (spec.strip_suffix('*'), spec.split_once(':')) {
        (Some(name), _) => (name, Modifier::Explode),
        (None, Some((name, length))) => {
            if !length.parse().is_ok_and(|length: u32| (1..10_000).contains(&length)) {
                let what = format!("the prefix length of `{name}` must be 1 to 9999");
                return Err(TemplateError::Syntax(what));
            }
            (name, Modifier::Prefix)
        }
        (None, None) => (spec, Modifier::None),
    };
    Ok(Variable { name: name.to_owned(), modifier })
}

/// One step of a match. Steps are numbered in order and lead to later ones only, so one sweep from
/// the back decides which (step, position) can still reach the end of the URI.
enum Step<'a> {
    Literal(&'a str),
    /// Either leave the variable out (go to `skip`), or read `lead` and then its value (go to
    /// `take`).
    Variable {
        operator: Operator,
        variable: &'a Variable,
        lead: String,
        take: usize,
        skip: Option<usize>,
    },
    Goto(usize),
}

struct Matcher<'a> {
    uri: &'a str,
    steps: Vec<Step<'a>>,
}

impl<'a> Matcher<'a> {
    fn new(template: &'a UriTemplate, uri: &'a str) -> Self {
        let mut steps = Vec::new();
        for part in &template.parts {
            match part {
                Part::Literal(text) => steps.push(Step::Literal(text)),
                Part::Expression(operator, variables) => {
                    expression_steps(*operator, variables, &mut steps);
                }
            }
        }
        Self { uri, steps }
    }

    /// `ends[e]`: longest stretch of value characters that begins at `e`.
    fn runs(&self, operator: Operator, exploded: bool) -> Vec<usize> {
        let bytes = self.uri.as_bytes();
        let mut ends: Vec<usize> = (0..=bytes.len()).collect();
        for at in (0..bytes.len()).rev() {
            let length = match bytes[at] {
                b'%' if is_triplet(bytes, at) => 3,
                byte if operator.admits(byte, exploded) => 1,
                _ => continue,
            };
            ends[at] = ends[at + length];
        }
        ends
    }

    fn values(&self) -> Option<BTreeMap<String, String>> {
        let width = self.uri.len() + 1;
        let last = self.steps.len();
        let mut reaches = vec![vec![false; width]; last + 1];
        reaches[last][width - 1] = true;
        for number in (0..last).rev() {
            reaches[number] = match &self.steps[number] {
                Step::Goto(next) => reaches[*next].clone(),
                Step::Literal(text) => (0..width)
                    .map(|at| {
                        self.uri.as_bytes()[at..].starts_with(text.as_bytes())
                            && reaches[number + 1][at + text.len()]
                    })
                    .collect(),
                Step::Variable { .. } => self.variable_reach(number, &reaches),
            };
        }
        reaches[0][0].then(|| self.walk(&reaches))
    }

    fn variable_reach(&self, number: usize, reaches: &[Vec<bool>]) -> Vec<bool> {
        let width = self.uri.len() + 1;
        (0..width)
            .zip(self.value_ends(number, reaches))
            .map(|(at, end)| end.is_some() || self.skips(number, at, reaches))
            .collect()
    }

    fn skips(&self, number: usize, at: usize, reaches: &[Vec<bool>]) -> bool {
        match &self.steps[number] {
            Step::Variable { skip: Some(skip), .. } => reaches[*skip][at],
            _ => false,
        }
    }

    /// For each position, where the longest value that begins there (after the lead) may end.
    fn value_ends(&self, number: usize, reaches: &[Vec<bool>]) -> Vec<Option<usize>> {
        let Step::Variable { operator, variable, lead, take, .. } = &self.steps[number] else {
            return Vec::new();
        };
        let bytes = self.uri.as_bytes();
        let runs = self.runs(*operator, variable.modifier == Modifier::Explode);
        // before[e]: the last position up to `e` from which the rest still matches.
        let mut before = Vec::with_capacity(bytes.len() + 1);
        let mut last = None;
        for (end, reached) in reaches[*take].iter().enumerate() {
            if *reached && !splits_triplet(bytes, end) {
                last = Some(end);
            }
            before.push(last);
        }
        (0..=bytes.len())
            .map(|at| {
                let start = at + lead.len();
                if !bytes[at..].starts_with(lead.as_bytes()) {
                    return None;
                }
                let least = start + usize::from(!operator.may_be_absent());
                before[runs[start]].filter(|end| *end >= least)
            })
            .collect()
    }

    /// Reads the values along the first way through.
    fn walk(&self, reaches: &[Vec<bool>]) -> BTreeMap<String, String> {
        let mut values = BTreeMap::new();
        let mut whole = Vec::new();
        let (mut number, mut at) = (0, 0);
        while let Some(step) = self.steps.get(number) {
            match step {
                Step::Goto(next) => number = *next,
                Step::Literal(text) => (number, at) = (number + 1, at + text.len()),
                Step::Variable { operator, variable, lead, take, skip } => {
                    match (self.value_ends(number, reaches)[at], skip) {
                        (Some(end), _) => {
                            let text = &self.uri[at + lead.len()..end];
                            // A prefix use never overrides what a whole use of the name says.
                            let is_whole = variable.modifier != Modifier::Prefix;
                            if is_whole || !whole.contains(&&variable.name) {
                                let value = value(*operator, variable, text);
                                values.insert(variable.name.clone(), value);
                            }
                            if is_whole {
                                whole.push(&variable.name);
                            }
                            (number, at) = (*take, end);
                        }
                        (None, Some(skip)) => number = *skip,
                        (None, None) => return values,
                    }
                }
            }
        }
        values
    }
}

/// Adds the steps of one expression: for each variable one before and one after the first value.
fn expression_steps<'a>(operator: Operator, variables: &'a [Variable], steps: &mut Vec<Step<'a>>) {
    let base = steps.len();
    let end = base + 2 * variables.len();
    for (index, variable) in variables.iter().enumerate() {
        let next = base + 2 * (index + 1);
        for started in [false, true] {
            let mut lead = if started { operator.separator() } else { operator.first() }.to_owned();
            if operator.is_named() {
                lead.push_str(&variable.name);
                // `{;x}` with an empty value is `;x`, which the longest-value reading of `;x=` is
                // not; such URIs are rare enough to go unmatched.
                lead.push('=');
            }
            // The step after the last variable is `end` for both.
            let after = |started: bool| if next == end { end } else { next + usize::from(started) };
            let skip = operator.may_be_absent().then(|| after(started));
            steps.push(Step::Variable { operator, variable, lead, take: after(true), skip });
        }
    }
    // Keeps `end` a step of its own, whatever follows.
    steps.push(Step::Goto(end + 1));
}

fn value(operator: Operator, variable: &Variable, text: &str) -> String {
    if variable.modifier != Modifier::Explode {
        return decoded(text, operator);
    }
    let separator = if operator.is_named() {
        format!("{}{}=", operator.separator(), variable.name)
    } else {
        operator.separator().to_owned()
    };
    let items: Vec<String> =
        text.split(separator.as_str()).map(|item| decoded(item, operator)).collect();
    items.join(operator.joint().encode_utf8(&mut [0; 4]))
}

/// The value that expands to `text`. Where reserved characters pass unencoded, a triplet that
/// stands for one of them stays a triplet: it would not come back otherwise.
fn decoded(text: &str, operator: Operator) -> String {
    let keep = |byte: u8| {
        operator.keeps_reserved() && (is_unreserved(byte) || is_reserved(byte) || byte == b'%')
    };
    decode_except(text, keep).unwrap_or_else(|| text.to_owned())
}

/// Percent-decodes `text`; `None` when the outcome is not UTF-8.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    decode_except(text, |_| false)
}

fn decode_except(text: &str, keep: impl Fn(u8) -> bool) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = is_triplet(bytes, at)
            .then(|| u8::from_str_radix(&text[at + 1..at + 3], 16).ok())
            .flatten()
            .filter(|byte| !keep(*byte));
        match byte {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok()
}

fn is_triplet(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at..at + 3), Some([b'%', high, low])
        if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

fn splits_triplet(bytes: &[u8], end: usize) -> bool {
    (1..=2).any(|back| end >= back && is_triplet(bytes, end - back))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn templates_match_what_they_expand_to() {
        let check = |template: &str, uri: &str, expect: &[(&str, &str)]| {
            let template = UriTemplate::parse(template).unwrap();
            assert_eq!(template.match_uri(uri), Some(values(expect)), "{uri}");
            assert_eq!(template.expand(&values(expect)).unwrap(), uri);
        };
        check("users://{user_id}/profile", "users://42/profile", &[("user_id", "42")]);
        check("docs://handbook", "docs://handbook", &[]);
        check("a://{x}/{y}", "a://1/2", &[("x", "1"), ("y", "2")]);
        check("a://{x}-{y}", "a://1-2-3", &[("x", "1-2"), ("y", "3")]);
        check("a://{x,y}", "a://1,2", &[("x", "1"), ("y", "2")]);
        check("a://{x}", "a://caf%C3%A9%2Fb", &[("x", "café/b")]);
        check("a://{x}", "a://..%2F..", &[("x", "../..")]);
        check("file:///{+path}", "file:///a/b%2Fc", &[("path", "a/b%2Fc")]);
        check("file:///{+path}.txt", "file:///a/b.txt", &[("path", "a/b")]);
        check("file:///{+path}", "file:///caf%C3%A9/x", &[("path", "café/x")]);
        check("a://h{/x}", "a://h/1", &[("x", "1")]);
        check("a://h{/x}", "a://h", &[]);
        check("a://h{/path*}", "a://h/1/2/3", &[("path", "1/2/3")]);
        check("a://h{.ext}", "a://h.tar.gz", &[("ext", "tar.gz")]);
        check("a://h{#part}", "a://h#s/1", &[("part", "s/1")]);
        check("a://h{?q,page}", "a://h?q=x%20y&page=2", &[("q", "x y"), ("page", "2")]);
        check("a://h{?q,page}", "a://h?page=2", &[("page", "2")]);
        check("a://h{?q,page}", "a://h", &[]);
        check("a://h?a=1{&b}", "a://h?a=1&b=2", &[("b", "2")]);
        check("a://h{?tag*}", "a://h?tag=1&tag=2", &[("tag", "1,2")]);
        check("a://{x:2}/{x}", "a://ab/abc", &[("x", "abc")]);
        check("a://{x:2}", "a://ab", &[("x", "ab")]);
        check("a://{x}/{x}", "a://1/1", &[("x", "1")]);
        check("a://é/{x}", "a://%C3%A9/1", &[("x", "1")]);
    }

    #[test]
    fn what_would_expand_to_another_uri_does_not_match() {
        let check = |template: &str, uri: &str| {
            assert_eq!(UriTemplate::parse(template).unwrap().match_uri(uri), None, "{uri}");
        };
        check("users://{id}/profile", "users://4/2/profile");
        check("users://{id}/profile", "users:///profile");
        check("a://{x}", "a://..%2f..");
        check("a://{x}", "a://%ff");
        check("a://{x}", "a://%4");
        check("a://{x}", "a://a b");
        check("a://{x}/{x}", "a://1/2");
        check("a://{x}2", "a://%22");
        check("a://{x}", "b://1");
        check("a://{x}", &format!("a://{}", "a".repeat(URI_BYTES)));
    }

    #[test]
    fn hostile_templates_are_bounded() {
        assert_eq!(UriTemplate::parse(&"a".repeat(3_000)), Err(TemplateError::TooLong));
        assert_eq!(UriTemplate::parse(&"{x}".repeat(65)), Err(TemplateError::TooManyVariables));
        for text in ["{", "{}", "{x", "x}", "{x*:3}", "{=x}", "{x:0}", "{x:99999}", "{a b}", "{é}"]
        {
            assert!(matches!(UriTemplate::parse(text), Err(TemplateError::Syntax(_))), "{text}");
        }
        // Sixty-four adjacent variables over a long URI that fails at its last character.
        let template = UriTemplate::parse(&("{+a}".repeat(63) + "{+b}!!")).unwrap();
        assert_eq!(template.match_uri(&"a".repeat(8_000)), None);
    }

    proptest! {
        #[test]
        fn expand_then_match_gives_the_variables_back(
            id in "\\PC{1,12}", path in "[a-z]{1,3}(/[a-z]{1,3}){0,3}", q in "\\PC{0,8}"
        ) {
            let template = UriTemplate::parse("x://{id}/at{/path*}{?q}").unwrap();
            let given = values(&[("id", &id), ("path", &path), ("q", &q)]);
            let uri = template.expand(&given).unwrap();
            prop_assert_eq!(template.match_uri(&uri), Some(given));
        }

        #[test]
        fn a_match_always_expands_to_the_uri(
            template in "[ab]?(\\{[+#./;?&]?[xy](\\*|:2)?(,z)?\\}[ab/,.]?){1,3}",
            uri in "[abxyz%2F/,.?&=;#]{0,16}",
        ) {
            let template = UriTemplate::parse(&template).unwrap();
            if let Some(values) = template.match_uri(&uri) {
                prop_assert_eq!(template.expand(&values).unwrap(), uri);
            }
        }

        #[test]
        fn nothing_panics(template in "\\PC{0,24}", uri in "\\PC{0,24}") {
            if let Ok(template) = UriTemplate::parse(&template) {
                let _ = template.match_uri(&uri);
            }
        }
    }
}
