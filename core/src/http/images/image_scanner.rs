//! Incremental base64 decoding and image recognition.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::digest;

/// Characters of one group of base64.
const GROUP: usize = 4;
/// Fewest bytes of an image: those that its type is recognised by.
const IMAGE_BYTES_MIN: usize = 8;

/// The base64 of a data URL, or the whole text; `None` for a data URL in another encoding.
pub(crate) fn strip_data_url_header(text: &[u8]) -> Option<&[u8]> {
    const MARKER: &[u8] = b";base64,";
    if !text.starts_with(b"data:") {
        return Some(text);
    }
    let at = text.windows(MARKER.len()).position(|window| window == MARKER)?;
    text.get(at + MARKER.len()..)
}

/// Decodes padded base64 (RFC 4648, section 4) incrementally.
#[derive(Debug, Default)]
pub(crate) struct Base64Decoder {
    /// Input not decoded yet: at most one group, because the last one may be padded.
    pending: Vec<u8>,
}

impl Base64Decoder {
    /// Decodes more input; `None` when it is not base64.
    pub(crate) fn push(&mut self, text: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
        if self.pending.len() + text.len() <= GROUP {
            self.pending.extend_from_slice(text);
            return Some(());
        }
        // Completes the pending group; then decodes all complete groups but the last.
        let completing = (GROUP - self.pending.len() % GROUP) % GROUP;
        let (start, rest) = text.split_at_checked(completing)?;
        self.pending.extend_from_slice(start);
        // More input follows, so there is no padding.
        STANDARD_NO_PAD.decode_vec(&self.pending, bytes).ok()?;
        self.pending.clear();
        let last = match rest.len() % GROUP {
            0 => GROUP,
            rest => rest,
        };
        let (whole, last) = rest.split_at_checked(rest.len() - last)?;
        STANDARD_NO_PAD.decode_vec(whole, bytes).ok()?;
        self.pending.extend_from_slice(last);
        Some(())
    }

    /// Decodes the last group; `None` when it is incomplete.
    pub(crate) fn finish(self, bytes: &mut Vec<u8>) -> Option<()> {
        STANDARD.decode_vec(&self.pending, bytes).ok()
    }
}

/// Type, size and digest of an image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ImageInfo {
    pub(crate) media_type: &'static str,
    pub(crate) size: u64,
    /// SHA-256 of the bytes.
    pub(crate) digest: Vec<u8>,
}

/// Computes an image's type, size and digest incrementally.
pub(crate) struct ImageScanner {
    start: Vec<u8>,
    size: u64,
    digest: digest::Context,
}

impl Default for ImageScanner {
    fn default() -> Self {
        Self { start: Vec::new(), size: 0, digest: digest::Context::new(&digest::SHA256) }
    }
}

impl ImageScanner {
    /// Scans the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let missing = IMAGE_BYTES_MIN.saturating_sub(self.start.len());
        self.start.extend(bytes.iter().take(missing));
        self.size = self.size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.digest.update(bytes);
    }

    /// The media type by the first bytes; `None` until a supported one is recognised.
    pub(crate) fn media_type(&self) -> Option<&'static str> {
        let types: [(&[u8], &str); 3] = [
            (&[0xff, 0xd8, 0xff], "image/jpeg"),
            (b"\x89PNG\r\n\x1a\n", "image/png"),
            (b"%PDF-", "application/pdf"),
        ];
        let known = types.into_iter().find(|(magic, _)| self.start.starts_with(magic));
        known.filter(|_| self.start.len() >= IMAGE_BYTES_MIN).map(|(_, name)| name)
    }

    /// The result; `None` when the type is not supported.
    pub(crate) fn finish(self) -> Option<ImageInfo> {
        let media_type = self.media_type()?;
        let digest = self.digest.finish().as_ref().to_vec();
        Some(ImageInfo { media_type, size: self.size, digest })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::http::images::ReceivedImage;

    fn image(text: &str) -> Option<ImageInfo> {
        ReceivedImage::decode(text).map(|image| image.info)
    }

    fn png(size: usize) -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        bytes.resize(size, 7);
        STANDARD.encode(bytes)
    }

    fn decode_in_chunks(text: &[u8], sizes: &[usize]) -> Option<Vec<u8>> {
        let (mut decoder, mut bytes, mut rest) = (Base64Decoder::default(), Vec::new(), text);
        for size in sizes {
            let (chunk, later) = rest.split_at(rest.len().min(*size));
            decoder.push(chunk, &mut bytes)?;
            rest = later;
        }
        decoder.push(rest, &mut bytes)?;
        decoder.finish(&mut bytes)?;
        Some(bytes)
    }

    #[test]
    fn an_image_is_recognised_by_its_first_bytes() {
        for size in [8, 9, 10, 1_000, 70_001] {
            let image = image(&png(size)).unwrap();
            assert_eq!((image.media_type, image.size), ("image/png", size as u64));
        }
        let url = format!("data:image/png;base64,{}", png(100));
        assert_eq!(image(&url), image(&png(100)));
        assert_ne!(image(&png(101)).unwrap().digest, image(&png(100)).unwrap().digest);
        let html = STANDARD.encode("<html></html>");
        for bad in ["", "AAAA", "not base64!", &html, "/9j/", &png(20)[..21], "data:image/png,x"] {
            assert_eq!(image(bad), None, "{bad}");
        }
    }

    #[test]
    fn padding_is_accepted_at_the_end_only() {
        for (bad, sizes) in [("AA==AAAA", vec![4]), ("AA==AAAA", vec![3, 3]), ("AA=A", vec![])] {
            assert_eq!(decode_in_chunks(bad.as_bytes(), &sizes), None, "{bad} {sizes:?}");
        }
    }

    proptest! {
        #[test]
        fn chunked_decoding_equals_decoding_at_once(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
            sizes in proptest::collection::vec(0usize..9, 0..12),
            corrupted in proptest::option::of((0usize..90, any::<u8>())),
        ) {
            let mut text = STANDARD.encode(&bytes).into_bytes();
            if let Some((at, byte)) = corrupted && let Some(target) = text.get_mut(at) {
                *target = byte;
            }
            prop_assert_eq!(decode_in_chunks(&text, &sizes), STANDARD.decode(&text).ok());
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".*", near in "iVBORw0KGgo[A-Za-z0-9+/=]{0,30}") {
            let _ = (image(&text), image(&near));
        }
    }
}
