//! Timestamps in responses.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};

/// A timestamp in RFC 3339 and UTC, with no decimals or with three, six or nine, as needed: the same
/// text as `DateTime` serializes to, but written in one piece instead of character by character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(pub DateTime<Utc>);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }
}

crate::inline_schema!(Timestamp, {"type": "string", "format": "date-time"});

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_serializes_as_chrono_does(
            seconds in -62_135_596_800_i64..=253_402_300_799,
            nanos in prop_oneof![Just(0), (0_u32..1_000).prop_map(|ms| ms * 1_000_000), 0_u32..1_000_000_000],
        ) {
            let time = DateTime::from_timestamp(seconds, nanos).unwrap();
            let written = serde_json::to_string(&Timestamp(time)).unwrap();
            prop_assert_eq!(written, serde_json::to_string(&time).unwrap());
        }
    }
}
