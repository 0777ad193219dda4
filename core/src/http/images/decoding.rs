//! Base64 that comes in pieces, and what the bytes in it are.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::digest;

/// Characters of one group of base64.
const GROUP: usize = 4;
/// Fewest bytes of an image: what its type is told by.
const IMAGE_BYTES_MIN: usize = 8;

/// What stands behind the head of a data URL, or the whole text; `None` for a data URL of another
/// form.
pub(crate) fn without_url_head(text: &[u8]) -> Option<&[u8]> {
    const MARK: &[u8] = b";base64,";
    if !text.starts_with(b"data:") {
        return Some(text);
    }
    let at = text.windows(MARK.len()).position(|window| window == MARK)?;
    text.get(at + MARK.len()..)
}

/// Decodes base64 (RFC 4648, section 4, padded) piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Decoding {
    /// What is not decoded yet: one group at most, because the last one may be padded.
    held: Vec<u8>,
}

impl Decoding {
    /// Decodes some more; `None` when it is not base64.
    pub(crate) fn push(&mut self, text: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
        if self.held.len() + text.len() <= GROUP {
            self.held.extend_from_slice(text);
            return Some(());
        }
        // Completes the group that is held; then whole groups, all but the last.
        let completing = (GROUP - self.held.len() % GROUP) % GROUP;
        let (start, rest) = text.split_at_checked(completing)?;
        self.held.extend_from_slice(start);
        // It is not the end, so it has no padding.
        STANDARD_NO_PAD.decode_vec(&self.held, bytes).ok()?;
        self.held.clear();
        let last = match rest.len() % GROUP {
            0 => GROUP,
            rest => rest,
        };
        let (whole, last) = rest.split_at_checked(rest.len() - last)?;
        STANDARD_NO_PAD.decode_vec(whole, bytes).ok()?;
        self.held.extend_from_slice(last);
        Some(())
    }

    /// Decodes the end; `None` when it is not the end of base64.
    pub(crate) fn finish(self, bytes: &mut Vec<u8>) -> Option<()> {
        STANDARD.decode_vec(&self.held, bytes).ok()
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

/// Looks through an image piece by piece.
pub(crate) struct Look {
    start: Vec<u8>,
    size: u64,
    digest: digest::Context,
}

impl Default for Look {
    fn default() -> Self {
        Self { start: Vec::new(), size: 0, digest: digest::Context::new(&digest::SHA256) }
    }
}

impl Look {
    /// Looks at the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let missing = IMAGE_BYTES_MIN.saturating_sub(self.start.len());
        self.start.extend(bytes.iter().take(missing));
        self.size = self.size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.digest.update(bytes);
    }

    /// Its type by its first bytes; `None` as long as it is none that we take.
    pub(crate) fn media_type(&self) -> Option<&'static str> {
        let types: [(&[u8], &str); 3] = [
            (&[0xff, 0xd8, 0xff], "image/jpeg"),
            (b"\x89PNG\r\n\x1a\n", "image/png"),
            (b"%PDF-", "application/pdf"),
        ];
        let known = types.into_iter().find(|(mark, _)| self.start.starts_with(mark));
        known.filter(|_| self.start.len() >= IMAGE_BYTES_MIN).map(|(_, name)| name)
    }

    /// What it was; `None` when it was none that we take.
    pub(crate) fn finish(self) -> Option<Image> {
        let media_type = self.media_type()?;
        let digest = self.digest.finish().as_ref().to_vec();
        Some(Image { media_type, size: self.size, digest })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::http::images::Picture;

    fn image(text: &str) -> Option<Image> {
        Picture::read(text).map(|picture| picture.image)
    }

    fn png(size: usize) -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        bytes.resize(size, 7);
        STANDARD.encode(bytes)
    }

    fn in_pieces(text: &[u8], sizes: &[usize]) -> Option<Vec<u8>> {
        let (mut decoding, mut bytes, mut rest) = (Decoding::default(), Vec::new(), text);
        for size in sizes {
            let (piece, later) = rest.split_at(rest.len().min(*size));
            decoding.push(piece, &mut bytes)?;
            rest = later;
        }
        decoding.push(rest, &mut bytes)?;
        decoding.finish(&mut bytes)?;
        Some(bytes)
    }

    #[test]
    fn an_image_is_known_by_its_first_bytes() {
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
    fn padding_stands_at_the_end_alone() {
        for (bad, sizes) in [("AA==AAAA", vec![4]), ("AA==AAAA", vec![3, 3]), ("AA=A", vec![])] {
            assert_eq!(in_pieces(bad.as_bytes(), &sizes), None, "{bad} {sizes:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_decode_to_what_the_whole_does(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
            sizes in proptest::collection::vec(0usize..9, 0..12),
            broken in proptest::option::of((0usize..90, any::<u8>())),
        ) {
            let mut text = STANDARD.encode(&bytes).into_bytes();
            if let Some((at, byte)) = broken && let Some(place) = text.get_mut(at) {
                *place = byte;
            }
            prop_assert_eq!(in_pieces(&text, &sizes), STANDARD.decode(&text).ok());
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".*", near in "iVBORw0KGgo[A-Za-z0-9+/=]{0,30}") {
            let _ = (image(&text), image(&near));
        }
    }
}
