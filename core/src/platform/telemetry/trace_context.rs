//! The context of a trace as HTTP carries it: `traceparent` and `tracestate` (W3C Trace Context).

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;

/// Header with the ids of a trace and of the caller's span.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Header with what tracing systems add to it.
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Most bytes of a `tracestate` that are passed on.
const STATE_BYTES_MAX: usize = 512;
/// Most members of a `tracestate`; the specification allows no more.
const STATE_MEMBERS_MAX: usize = 32;
/// Longest key or value of a member, in bytes.
const STATE_PART_BYTES_MAX: usize = 256;
/// Length of a `traceparent` of version 00, and of the part that later versions begin with.
const PARENT_BYTES: usize = 55;
/// The flag that says that the caller records the trace.
const SAMPLED: u8 = 1;

/// The ids of a trace and of one span of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) is_sampled: bool,
    pub(super) state: Option<Arc<str>>,
}

impl TraceContext {
    /// The caller's, if it sent one that is well formed.
    pub(super) fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let mut parents = headers.get_all(TRACEPARENT).iter();
        let parent = parents.next()?.to_str().ok()?;
        if parents.next().is_some() {
            return None;
        }
        let mut members = Vec::new();
        for line in headers.get_all(TRACESTATE) {
            // One that is no text spoils all of them, as any malformed member does.
            members.push(line.to_str().unwrap_or("="));
        }
        Self::parse(parent, Some(&members.join(",")))
    }

    /// Reads both headers; `None` if `traceparent` is malformed. A malformed `tracestate` is left
    /// out.
    pub(crate) fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let (known, later) = traceparent.split_at_checked(PARENT_BYTES)?;
        let mut parts = known.split('-');
        let mut part = || parts.next();
        let [version] = hexadecimal(part()?)?;
        let (trace_id, span_id) = (hexadecimal(part()?)?, hexadecimal(part()?)?);
        let [flags] = hexadecimal(part()?)?;
        let follows = later.is_empty() || (version > 0 && later.starts_with('-'));
        let names_both = trace_id != [0; 16] && span_id != [0; 8];
        if part().is_some() || version == u8::MAX || !follows || !names_both {
            return None;
        }
        let state = tracestate.and_then(state).map(Arc::from);
        Some(Self { trace_id, span_id, is_sampled: flags & SAMPLED != 0, state })
    }

    /// The value of `traceparent`.
    pub fn traceparent(&self) -> String {
        let flags = if self.is_sampled { SAMPLED } else { 0 };
        format!("00-{}-{}-{flags:02x}", self.trace_id(), hex::encode(self.span_id))
    }

    /// The value of `tracestate`, if there is one.
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The id of the trace, 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        hex::encode(self.trace_id)
    }

    /// The headers that carry it.
    pub fn header_map(&self) -> HeaderMap {
        let parent = HeaderValue::try_from(self.traceparent()).ok();
        let state = self.tracestate().and_then(|state| HeaderValue::try_from(state).ok());
        let named = [(TRACEPARENT, parent), (TRACESTATE, state)];
        named.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// A trace as a row keeps it, for what goes on with it later.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub(crate) struct StoredTrace {
    /// The trace to go on with (W3C Trace Context); left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<String>,
    /// Beside `traceparent`, if its caller has sent one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tracestate: Option<String>,
}

impl From<&TraceContext> for StoredTrace {
    fn from(context: &TraceContext) -> Self {
        Self {
            traceparent: Some(context.traceparent()),
            tracestate: context.tracestate().map(str::to_owned),
        }
    }
}

impl StoredTrace {
    /// The trace, if there is one.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        TraceContext::parse(self.traceparent.as_deref()?, self.tracestate.as_deref())
    }
}

/// Bytes in lowercase hexadecimal digits.
fn hexadecimal<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    (is_lower && hex::decode_to_slice(text, &mut bytes).is_ok()).then_some(bytes)
}

/// The members of a list, without those at the end that are beyond the bounds; `None` when it is
/// empty or any member is malformed.
fn state(list: &str) -> Option<String> {
    let members: Vec<_> = list.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
    if members.is_empty() || !members.iter().all(|member| is_member(member)) {
        return None;
    }
    let mut kept = String::new();
    for member in members.into_iter().take(STATE_MEMBERS_MAX) {
        if kept.len() + 1 + member.len() > STATE_BYTES_MAX {
            break;
        }
        if !kept.is_empty() {
            kept.push(',');
        }
        kept.push_str(member);
    }
    (!kept.is_empty()).then_some(kept)
}

fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    let lengths = 1..=STATE_PART_BYTES_MAX;
    let begins = key.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let is_key =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    begins
        && lengths.contains(&key.len())
        && lengths.contains(&value.len())
        && key.bytes().all(is_key)
        && value.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_well_formed_parent_is_read_and_written_as_it_was() {
        let context = TraceContext::parse(PARENT, None).unwrap();
        assert_eq!(context.traceparent(), PARENT);
        assert_eq!(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(context.is_sampled && context.tracestate().is_none());
        let other = TraceContext::parse(&PARENT.replace("-01", "-00"), None).unwrap();
        assert!(!other.is_sampled);
        let later = PARENT.replacen("00", "cc", 1);
        for text in [later.clone(), format!("{later}-what-comes")] {
            assert_eq!(TraceContext::parse(&text, None).unwrap().traceparent(), PARENT, "{text}");
        }
    }

    #[test]
    fn a_malformed_parent_is_none() {
        let zeros = |count| "0".repeat(count);
        let bad = [
            String::new(),
            PARENT[..54].to_owned(),
            format!("{PARENT}-more"),
            format!("{PARENT} "),
            PARENT.to_uppercase(),
            PARENT.replacen("00", "ff", 1),
            format!("{}x", PARENT.replacen("00", "01", 1)),
            PARENT.replace('-', "_"),
            PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &zeros(32)),
            PARENT.replace("00f067aa0ba902b7", &zeros(16)),
            PARENT.replace("4b", "4ß"),
        ];
        for text in bad {
            assert_eq!(TraceContext::parse(&text, None), None, "{text:?}");
        }
        let mut headers = HeaderMap::new();
        for _ in 0..2 {
            headers.append(TRACEPARENT, PARENT.parse().unwrap());
            let found = TraceContext::of_headers(&headers).is_some();
            assert_eq!(found, headers.len() == 1, "two parents are none");
        }
    }

    #[test]
    fn a_state_is_passed_on_within_its_bounds() {
        let of = |list: &str| TraceContext::parse(PARENT, Some(list)).unwrap().state;
        assert_eq!(of(" a=1 , ,b@c=2 3").as_deref(), Some("a=1,b@c=2 3"));
        for bad in ["", "a", "a=", "=1", "A=1", "a=1=2", "a=1,b", "a=\u{7f}", "a=ß"] {
            assert_eq!(of(bad), None, "{bad:?}");
        }
        let many: Vec<_> = (0..40).map(|number| format!("k{number}=v")).collect();
        assert_eq!(of(&many.join(",")).unwrap().split(',').count(), STATE_MEMBERS_MAX);
        let long: Vec<_> = (0..4).map(|key| format!("k{key}={}", "v".repeat(200))).collect();
        assert_eq!(of(&long.join(",")).as_deref(), Some(&*long[..2].join(",")));
    }

    proptest! {
        #[test]
        fn nothing_breaks_the_parser(parent in ".{0,70}", list in ".{0,600}") {
            if let Some(context) = TraceContext::parse(&parent, Some(&list)) {
                prop_assert_eq!(context.traceparent().len(), PARENT_BYTES);
                prop_assert!(context.tracestate().is_none_or(|state| state.len() <= STATE_BYTES_MAX));
            }
            let with_list = TraceContext::parse(PARENT, Some(&list)).unwrap();
            prop_assert!(!with_list.header_map().is_empty());
        }
    }
}
