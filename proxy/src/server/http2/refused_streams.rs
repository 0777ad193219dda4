//! The streams of a connection whose heads are refused although the h2 crate accepts them.

use std::sync::{Mutex, PoisonError};

/// Most of them at once: more than may run and be reset before, since the h2 crate accepts only some.
const REFUSED_MAX: usize = super::SHARED_RESETS_MAX + 2 * super::STREAMS_MAX as usize;

/// Streams that are refused, and not accepted yet.
#[derive(Debug, Default)]
pub(crate) struct RefusedStreams(Mutex<Refused>);

#[derive(Debug, Default)]
struct Refused {
    streams: Vec<u32>,
    all: bool,
}

/// The judgement on a stream that the h2 crate has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing against it.
    Accepted,
    /// Its head is refused.
    Refused,
    /// Its head could not be read: the connection is to end.
    Unknown,
}

impl RefusedStreams {
    /// Refuses one. Where they are too many all are refused.
    pub(super) fn refuse(&self, stream: u32) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.streams.len() < REFUSED_MAX {
            refused.streams.push(stream);
        } else {
            refused.all = true;
        }
    }

    /// Refuses all that are not accepted yet.
    pub(super) fn refuse_all(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all = true;
    }

    /// Judges a stream, after all with lower numbers: those are forgotten with it, for the h2 crate
    /// accepts streams in their order and has refused itself what it passed over.
    pub(super) fn judge(&self, stream: u32) -> Verdict {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.all {
            return Verdict::Unknown;
        }
        let verdict = match refused.streams.contains(&stream) {
            true => Verdict::Refused,
            false => Verdict::Accepted,
        };
        refused.streams.retain(|other| *other > stream);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_stream_is_known_once_and_those_before_it_are_forgotten() {
        let refused = RefusedStreams::default();
        [1, 5, 9].into_iter().for_each(|stream| refused.refuse(stream));
        let verdicts = [3, 5, 7, 9, 5].map(|stream| refused.judge(stream));
        let (yes, no) = (Verdict::Refused, Verdict::Accepted);
        assert_eq!(verdicts, [no, yes, no, yes, no]);
        assert!(refused.0.lock().unwrap().streams.is_empty());
    }

    #[test]
    fn too_many_refuse_all() {
        let refused = RefusedStreams::default();
        for _ in 0..REFUSED_MAX {
            refused.refuse(1);
        }
        assert_eq!(refused.judge(1), Verdict::Refused);
        for _ in 0..=REFUSED_MAX {
            refused.refuse(3);
        }
        assert_eq!(refused.judge(5), Verdict::Unknown);
    }
}
