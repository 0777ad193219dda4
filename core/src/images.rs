//! Images as they come in requests: base64 in JSON, told by their first bytes.
//!
//! Reading a body with an image in it takes long enough to hold up others, so it is done off the
//! threads that serve ([`Images::run`]), a few at a time.

use std::time::Duration;

use base64::engine::general_purpose::STANDARD;
use base64::read::DecoderReader;
use ring::digest;
use tokio::sync::Semaphore;

use crate::Core;
use crate::caller::Client;
use crate::error::{Error, Result};
use crate::rate_limit::KeyedGcra;
use crate::types::{ClientId, UserId};

/// Bytes that are decoded at a time.
const CHUNK_BYTES: usize = 16 * 1024;
/// Fewest bytes of an image: what its type is told by.
const IMAGE_BYTES_MIN: u64 = 8;
/// Most bodies with images that are read at a time; the others wait.
const READ_AT_ONCE_MAX: usize = 2;
/// Most users whose uploads are counted at a time.
const COUNTED_MAX: u64 = 65_536;
/// How long a user who uploads no more is remembered: the bucket is full again by then.
const REMEMBERED: Duration = Duration::from_secs(3_600);

/// Work on images, bounded in number and in rate.
#[derive(Debug)]
pub struct Images {
    at_once: Semaphore,
    by_user: KeyedGcra<(ClientId, UserId)>,
}

impl Default for Images {
    fn default() -> Self {
        Self {
            at_once: Semaphore::new(READ_AT_ONCE_MAX),
            by_user: KeyedGcra::new(COUNTED_MAX, REMEMBERED),
        }
    }
}

impl Images {
    /// Runs work on an image off the threads that serve.
    ///
    /// # Errors
    /// When the work panics, which is our fault.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let doing = "read an image";
        let _permit = self.at_once.acquire().await.map_err(|e| Error::internal(doing, e))?;
        tokio::task::spawn_blocking(work).await.map_err(|e| Error::internal(doing, e))
    }

    /// Counts an upload of this user (section 4 of the contract).
    ///
    /// # Errors
    /// Code 920.
    pub(crate) fn count(&self, core: &Core, client: &Client, user: UserId) -> Result<()> {
        let (quota, now) = (client.tenant.rates.uploads, core.clock.monotonic_ns());
        let decision = self.by_user.take((client.id(), user), quota, now);
        if decision.allowed {
            return Ok(());
        }
        core.metrics.rate_limited.with_label_values(&["uploads", &*client.tenant.slug]).inc();
        Err(Error::rate_limited(decision.retry_after_seconds))
    }
}

/// What an image is, found by looking through it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) media_type: &'static str,
    pub(crate) size: u64,
    /// SHA-256 of the bytes.
    pub(crate) digest: Vec<u8>,
}

impl Image {
    /// Reads base64 (a data URL's head before it is ignored); `None` unless it is a JPEG, PNG or
    /// PDF by its first bytes.
    pub(crate) fn read(text: &str) -> Option<Self> {
        Self::read_into(text, |_| ())
    }

    /// The same, and gives away the bytes piece by piece.
    pub(crate) fn read_into(text: &str, mut take: impl FnMut(&[u8])) -> Option<Self> {
        let encoded = match text.strip_prefix("data:") {
            Some(url) => url.split_once(";base64,")?.1,
            None => text,
        };
        let mut decoder = DecoderReader::new(encoded.as_bytes(), &STANDARD);
        let (mut context, mut size) = (digest::Context::new(&digest::SHA256), 0);
        let (mut chunk, mut media_type) = ([0; CHUNK_BYTES], None);
        loop {
            let count = fill(&mut decoder, &mut chunk)?;
            let read = chunk.get(..count)?;
            if size == 0 {
                media_type = sniff(read);
            }
            if count == 0 {
                break;
            }
            context.update(read);
            take(read);
            size += u64::try_from(count).ok()?;
        }
        let media_type = media_type.filter(|_| size >= IMAGE_BYTES_MIN)?;
        Some(Self { media_type, size, digest: context.finish().as_ref().to_vec() })
    }
}

/// Reads until the chunk is full or the text ends; `None` when it is not base64.
fn fill(decoder: &mut impl std::io::Read, chunk: &mut [u8]) -> Option<usize> {
    let mut filled = 0;
    while let Some(rest) = chunk.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match decoder.read(rest).ok()? {
            0 => break,
            count => filled += count,
        }
    }
    Some(filled)
}

fn sniff(start: &[u8]) -> Option<&'static str> {
    let types: [(&[u8], &str); 3] = [
        (&[0xff, 0xd8, 0xff], "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"%PDF-", "application/pdf"),
    ];
    types.into_iter().find(|(mark, _)| start.starts_with(mark)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use proptest::prelude::*;

    use super::*;

    fn png(size: usize) -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        bytes.resize(size, 7);
        STANDARD.encode(bytes)
    }

    #[test]
    fn an_image_is_known_by_its_first_bytes() {
        for size in [8, 9, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 5] {
            let image = Image::read(&png(size)).unwrap();
            assert_eq!((image.media_type, image.size), ("image/png", size as u64));
        }
        let url = format!("data:image/png;base64,{}", png(100));
        assert_eq!(Image::read(&url), Image::read(&png(100)));
        assert_ne!(Image::read(&png(101)).unwrap().digest, Image::read(&png(100)).unwrap().digest);
        let html = STANDARD.encode("<html></html>");
        for bad in ["", "AAAA", "not base64!", &html, "/9j/", &png(20)[..21], "data:image/png,x"] {
            assert_eq!(Image::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_bytes_are_given_away_whole() {
        let mut bytes = Vec::new();
        Image::read_into(&png(3 * CHUNK_BYTES + 5), |chunk| bytes.extend_from_slice(chunk))
            .unwrap();
        assert_eq!(STANDARD.encode(bytes), png(3 * CHUNK_BYTES + 5));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".*", near in "iVBORw0KGgo[A-Za-z0-9+/=]{0,30}") {
            let _ = (Image::read(&text), Image::read(&near));
        }
    }
}
