//! What an entry may inherit from its file's `defaults`: the timeouts and the era.

use std::{ops::RangeInclusive, time::Duration};

use toolcrib_core::{target::Timeouts, version::EraPolicy};

use super::{fields::Fields, node::Member, text::Source};

/// The keys of `defaults`.
const KEYS: &[(&str, &[&str])] = &[
    ("era", &[]),
    ("start_timeout_ms", &[]),
    ("probe_timeout_ms", &[]),
    ("list_timeout_ms", &[]),
    ("call_timeout_ms", &[]),
    ("call_max_timeout_ms", &[]),
];

/// Up to a day: longer is not a timeout.
const TIMEOUT_MS: RangeInclusive<u64> = 1..=86_400_000;

/// The settings one table gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    era: Option<EraPolicy>,
    start: Option<Duration>,
    probe: Option<Duration>,
    list: Option<Duration>,
    call: Option<Duration>,
    call_max: Option<Duration>,
}

impl Settings {
    /// Reads the `defaults` of a file; what is wrong in them is noted in the returned fields.
    pub(crate) fn of_file<'a>(source: &'a Source, member: &'a Member) -> (Self, Fields<'a>) {
        let mut fields = Fields::new(source, None, member.at);
        let settings = match member.node.value.members() {
            Some(members) => {
                fields.take(members, KEYS);
                Self::read(&mut fields)
            }
            None => {
                let kind = member.node.value.kind();
                fields.error(member.node.at, format!("`defaults` is {kind}, not a table"));
                Self::default()
            }
        };
        (settings, fields)
    }

    /// Reads the settings among the members of a table.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Self {
        let mut time = |key| fields.number(key, TIMEOUT_MS).map(Duration::from_millis);
        Self {
            start: time("start_timeout_ms"),
            probe: time("probe_timeout_ms"),
            list: time("list_timeout_ms"),
            call: time("call_timeout_ms"),
            call_max: time("call_max_timeout_ms"),
            era: era(fields),
        }
    }

    /// These settings where given, else those of `defaults`.
    pub(crate) fn over(self, defaults: &Self) -> Self {
        Self {
            era: self.era.or(defaults.era),
            start: self.start.or(defaults.start),
            probe: self.probe.or(defaults.probe),
            list: self.list.or(defaults.list),
            call: self.call.or(defaults.call),
            call_max: self.call_max.or(defaults.call_max),
        }
    }

    /// The values to use, with the built-in ones where nothing is given.
    pub(crate) fn resolve(self, fields: &mut Fields<'_>) -> (EraPolicy, Timeouts) {
        let built_in = Timeouts::default();
        let call = self.call.unwrap_or(built_in.call);
        if let Some(call_max) = self.call_max
            && call_max < call
        {
            let at = fields
                .get("call_max_timeout_ms")
                .or_else(|| fields.get("call_timeout_ms"))
                .map_or(fields.at, |field| field.at);
            fields.error(at, "`call_max_timeout_ms` is less than `call_timeout_ms`");
        }
        let timeouts = Timeouts {
            start: self.start.unwrap_or(built_in.start),
            probe: self.probe.unwrap_or(built_in.probe),
            list: self.list.unwrap_or(built_in.list),
            call,
            // A long call timeout alone raises the bound it would otherwise run into.
            call_max: self.call_max.unwrap_or(built_in.call_max.max(call)),
        };
        (self.era.unwrap_or_default(), timeouts)
    }
}

fn era(fields: &mut Fields<'_>) -> Option<EraPolicy> {
    let field = fields.get("era")?;
    let era = match fields.text("era")?.as_str() {
        "auto" => EraPolicy::Auto,
        "modern" => EraPolicy::Modern,
        "legacy" => EraPolicy::Legacy,
        _ => {
            fields.error(field.node.at, "`era` is not \"auto\", \"modern\" or \"legacy\"");
            return None;
        }
    };
    Some(era)
}
