//! Cursor of a page of orders, an opaque text to callers.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};

use rampart_types::OrderId;

/// A time in microseconds and an order's number.
const CURSOR_BYTES: usize = 16;
/// Later than any order, in seconds since 1970: the year 9999.
const END_OF_TIME_SECONDS: i64 = 253_370_764_800;

/// A position in the list, which is sorted newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) order_id: i64,
}

impl Cursor {
    /// The position right after an order.
    pub(crate) fn after(created_at: DateTime<Utc>, order: OrderId) -> Self {
        Self { created_at, order_id: order.number() }
    }

    /// The start of a page for a cursor and a time before which orders must be created.
    pub(crate) fn start(cursor: Option<Self>, to: Option<DateTime<Utc>>) -> Self {
        let end = DateTime::from_timestamp(END_OF_TIME_SECONDS, 0).unwrap_or_default();
        // Numbers start at 1, so no order created at `to` itself comes after this.
        let to = Self { created_at: to.map_or(end, |to| to.min(end)), order_id: 0 };
        cursor.map_or(to, |cursor| cursor.min(to))
    }

    pub(crate) fn encode(self) -> String {
        let time = self.created_at.timestamp_micros().to_be_bytes();
        URL_SAFE_NO_PAD.encode([time, self.order_id.to_be_bytes()].concat())
    }

    /// Parses a cursor; `None` if it is invalid.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; CURSOR_BYTES];
        let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        let (time, number) = bytes.split_at(8);
        let micros = i64::from_be_bytes(time.try_into().ok()?);
        let order_id = OrderId::new(i64::from_be_bytes(number.try_into().ok()?))?.number();
        let known =
            length == CURSOR_BYTES && (0..END_OF_TIME_SECONDS * 1_000_000).contains(&micros);
        let created_at = DateTime::from_timestamp_micros(micros).filter(|_| known)?;
        Some(Self { created_at, order_id })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_reads_back(micros in 0..END_OF_TIME_SECONDS * 1_000_000, random: u64) {
            let created_at = DateTime::from_timestamp_micros(micros).unwrap();
            let cursor = Cursor { created_at, order_id: OrderId::from_entropy(random).number() };
            prop_assert_eq!(Cursor::parse(&cursor.encode()), Some(cursor));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC{0,40}", near in "[A-Za-z0-9_-]{22}") {
            let _ = (Cursor::parse(&text), Cursor::parse(&near));
        }

        #[test]
        fn the_earlier_of_cursor_and_end_counts(a in 0_i64..1000, b in 0_i64..1000) {
            let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
            let cursor = Cursor { created_at: at(a), order_id: 7 };
            let start = Cursor::start(Some(cursor), Some(at(b)));
            prop_assert_eq!(start.created_at, at(a.min(b)));
            prop_assert!(start <= cursor);
        }
    }
}
