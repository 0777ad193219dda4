//! The http crate cuts a fragment off a `:path` before anybody sees it, where HTTP/1 refuses it, and
//! the h2 crate drops the `:scheme` of a head without `:authority`. So the frames are read while they
//! pass by, as far as it takes to know whose `:path` has a fragment and whose `:scheme` is another
//! one than https and http.

use std::sync::Arc;

use super::header_scan::{HeaderScan, Unreadable};
use crate::server::connection_info::ConnectionInfo;

/// Length of what a client sends before its first frame (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;
/// Length of the head of a frame (RFC 9113, section 4.1).
const HEAD_BYTES: usize = 9;
/// Length of the priority in a frame of headers.
const PRIORITY_BYTES: usize = 5;
/// A frame's head, and what stands before its header block: the length of its padding, the priority.
const HEAD_BYTES_MAX: usize = HEAD_BYTES + 1 + PRIORITY_BYTES;
/// The bits of a stream's number; the highest is reserved.
const STREAM_BITS: u32 = 0x7fff_ffff;

/// Types of frames.
const HEADERS: u8 = 0x1;
const PUSH_PROMISE: u8 = 0x5;
const CONTINUATION: u8 = 0x9;
/// Flags of frames.
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// Reads what a client sends over one connection of HTTP/2, and tells its [`ConnectionInfo`] of the
/// streams that are to be refused, before they can be accepted.
#[derive(Debug)]
pub(crate) struct FrameScan {
    info: Arc<ConnectionInfo>,
    headers: HeaderScan,
    head: [u8; HEAD_BYTES_MAX],
    /// Bytes of `head` that are there.
    held: usize,
    expects: Expects,
    /// The stream whose header block goes on.
    open: Option<u32>,
}

/// The part of a frame that comes next.
#[derive(Clone, Copy, Debug)]
enum Expects {
    Head,
    /// So many bytes of a header block, and of padding behind them.
    Headers {
        left: usize,
        padding: usize,
        ends: bool,
    },
    /// So many bytes that do not matter.
    Other(usize),
    /// Nothing that can be read.
    Unreadable,
}

impl FrameScan {
    pub(crate) fn new(info: Arc<ConnectionInfo>) -> Self {
        Self {
            info,
            headers: HeaderScan::default(),
            head: [0; HEAD_BYTES_MAX],
            held: 0,
            expects: Expects::Other(PREFACE_BYTES),
            open: None,
        }
    }

    /// Goes on with what has arrived. Where it cannot be read the connection is to end: nearly always
    /// the h2 crate does not read on either.
    pub(crate) fn advance(&mut self, bytes: &[u8]) {
        if self.read(bytes).is_err() {
            self.expects = Expects::Unreadable;
            self.info.refused_streams.refuse_all();
        }
    }

    fn read(&mut self, mut bytes: &[u8]) -> Result<(), Unreadable> {
        while !bytes.is_empty() {
            bytes = match self.expects {
                Expects::Head => self.read_head(bytes)?,
                Expects::Headers { left, padding, ends } => {
                    let (own, rest) = bytes.split_at(left.min(bytes.len()));
                    self.headers.advance(own)?;
                    self.expects = Expects::Headers { left: left - own.len(), padding, ends };
                    rest
                }
                Expects::Other(left) => {
                    let own = left.min(bytes.len());
                    self.expects = Expects::Other(left - own);
                    &bytes[own..]
                }
                Expects::Unreadable => return Ok(()),
            };
            self.end_part()?;
        }
        Ok(())
    }

    /// Takes of `bytes` what belongs to the head of a frame, and gives the rest.
    fn read_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Unreadable> {
        let own = (self.head_bytes() - self.held).min(bytes.len());
        let (own, rest) = bytes.split_at(own);
        self.head[self.held..self.held + own.len()].copy_from_slice(own);
        self.held += own.len();
        if self.held == self.head_bytes() {
            self.expects = self.judge_head()?;
            self.held = 0;
        }
        Ok(rest)
    }

    /// Length of the head, as far as it is known.
    fn head_bytes(&self) -> usize {
        let [_, _, _, kind, flags, ..] = self.head;
        if self.held < HEAD_BYTES || kind != HEADERS {
            return HEAD_BYTES;
        }
        let padding = usize::from(flags & PADDED != 0);
        HEAD_BYTES + padding + if flags & PRIORITY != 0 { PRIORITY_BYTES } else { 0 }
    }

    /// Judges a whole head, and gives the part that follows it.
    fn judge_head(&mut self) -> Result<Expects, Unreadable> {
        let [high, middle, low, kind, flags, s0, s1, s2, s3, ..] = self.head;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        let stream = u32::from_be_bytes([s0, s1, s2, s3]) & STREAM_BITS;
        let (left, padding) = match (kind, self.open) {
            (CONTINUATION, Some(open)) if open == stream => (length, 0),
            (HEADERS, None) => {
                let padding = self.padding(stream)?;
                let around = self.head_bytes() - HEAD_BYTES + padding;
                (length.checked_sub(around).ok_or(Unreadable)?, padding)
            }
            // A client promises nothing, and a header block is not interrupted.
            (HEADERS | CONTINUATION | PUSH_PROMISE, _) | (_, Some(_)) => return Err(Unreadable),
            _ => return Ok(Expects::Other(length)),
        };
        self.open = Some(stream);
        Ok(Expects::Headers { left, padding, ends: flags & END_HEADERS != 0 })
    }

    /// Length of the padding behind the headers of `stream`.
    fn padding(&self, stream: u32) -> Result<usize, Unreadable> {
        let [_, _, _, _, flags, ..] = self.head;
        let more = &self.head[HEAD_BYTES..self.head_bytes()];
        let (padding, priority) = match more.split_first() {
            Some((padding, priority)) if flags & PADDED != 0 => (usize::from(*padding), priority),
            _ => (0, more),
        };
        // The h2 crate skips the headers of a stream that depends on itself, so that its table is not the
        // client's any more.
        let depends_on = priority.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        if depends_on.is_some_and(|other| other & STREAM_BITS == stream) {
            return Err(Unreadable);
        }
        Ok(padding)
    }

    /// Goes on to the next part where nothing is left of this one.
    fn end_part(&mut self) -> Result<(), Unreadable> {
        if let Expects::Headers { left: 0, padding, ends } = self.expects {
            if ends
                && let Some(stream) = self.open.take()
                && self.headers.end()?
            {
                self.info.refused_streams.refuse(stream);
            }
            self.expects = Expects::Other(padding);
        }
        if let Expects::Other(0) = self.expects {
            self.expects = Expects::Head;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) use self::tests::coded;
