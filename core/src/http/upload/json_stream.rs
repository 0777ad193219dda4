//! Incremental reading of a large JSON body. One is up to 64 MiB, and its images go to the store as they
//! arrive: a JSON library would hold each body as a whole.

use ring::digest;

use super::UploadError;
use super::string_decoder::{Malformed, StringDecoder};
use crate::http::images::{
    Base64Decoder, ImageInfo, ImageScanner, ReceivedImage, strip_data_url_header,
};
use crate::http::request::BODY_BYTES_MAX;
use crate::platform::clock::Clock;
use crate::platform::error::Result;
use crate::platform::object_store::{DocumentStore, ObjectWriter};

/// Bytes above which a string is replaced by a placeholder.
const LONG_STRING_BYTES: usize = 16 * 1024;
/// Characters of a placeholder: more than any text member may have, so that a member which is no
/// image is refused like the long text would be.
const PLACEHOLDER_CHARS: usize = 2_048;
/// Most images of one body; further ones are ignored.
const IMAGES_MAX: usize = 16;

/// The JSON escape of the placeholder of a long string. No valid text member begins with U+0000. A
/// client that sends a placeholder itself refers to an image of its own body, or to none.
fn placeholder(index: usize) -> String {
    format!("\\u0000{index:<width$}", width = PLACEHOLDER_CHARS)
}

/// The state of reading one body.
pub(super) struct JsonStream {
    documents: DocumentStore,
    clock: Clock,
    digest: digest::Context,
    text: Vec<u8>,
    position: Position,
    /// The open brackets: true for an object's.
    open_objects: Vec<bool>,
    /// True if a string that begins now is a member's name.
    expects_name: bool,
    long_string: Option<LongString>,
    images: Vec<Option<(ImageInfo, ObjectWriter)>>,
    malformed: bool,
}

/// The position of the next byte.
#[derive(Clone, Copy)]
enum Position {
    Outside,
    /// In a string whose content begins at `start` of the text.
    InString {
        start: usize,
        is_name: bool,
        escaped: bool,
    },
}

/// A body that was read completely.
pub(super) struct ParsedBody {
    pub(super) text: Vec<u8>,
    pub(super) digest: Vec<u8>,
    pub(super) images: Vec<Option<ReceivedImage>>,
}

rampart_types::opaque_debug!(JsonStream);

impl JsonStream {
    pub(super) fn new(documents: DocumentStore, clock: Clock) -> Self {
        Self {
            documents,
            clock,
            digest: digest::Context::new(&digest::SHA256),
            text: Vec::new(),
            position: Position::Outside,
            open_objects: Vec::new(),
            expects_name: false,
            long_string: None,
            images: Vec::new(),
            malformed: false,
        }
    }

    /// Reads the next bytes. Blocks. Malformed JSON is no error yet, because the size limit comes first.
    ///
    /// # Errors
    /// When the body without its images is too large, or an image cannot be stored.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), UploadError> {
        self.digest.update(bytes);
        let mut rest = bytes;
        while !rest.is_empty() && !self.malformed {
            rest = match self.position {
                Position::Outside => self.copy_structure(rest),
                Position::InString { start, is_name, escaped } => {
                    let (run, escaped, later) = split_at_quote(rest, escaped);
                    self.position = Position::InString { start, is_name, escaped };
                    self.push_string(run, start, is_name).map_err(|e| super::internal(&e))?;
                    match later {
                        Some(later) => {
                            self.finish_string().map_err(|e| super::internal(&e))?;
                            later
                        }
                        None => &[],
                    }
                }
            };
            if self.text.len() > BODY_BYTES_MAX {
                return Err(UploadError::TooLarge);
            }
        }
        Ok(())
    }

    /// Copies bytes up to the opening quote of the next string and returns those after it. Runs of
    /// whitespace, which is insignificant in JSON, are collapsed.
    fn copy_structure<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {
                    if self.text.last() != Some(&b' ') {
                        self.text.push(b' ');
                    }
                    continue;
                }
                b'"' => {
                    let (start, is_name) = (self.text.len() + 1, self.expects_name);
                    self.position = Position::InString { start, is_name, escaped: false };
                    self.expects_name = false;
                    self.text.push(b'"');
                    return bytes.get(at + 1..).unwrap_or_default();
                }
                b'{' | b'[' => {
                    self.expects_name = *byte == b'{';
                    self.open_objects.push(self.expects_name);
                }
                b'}' | b']' => {
                    self.open_objects.pop();
                    self.expects_name = false;
                }
                b',' => self.expects_name = self.open_objects.last() == Some(&true),
                _ => {}
            }
            self.text.push(*byte);
        }
        &[]
    }

    fn push_string(&mut self, run: &[u8], start: usize, is_name: bool) -> Result<()> {
        if self.long_string.is_none() {
            self.text.extend_from_slice(run);
            if is_name || self.text.len() - start <= LONG_STRING_BYTES {
                return Ok(());
            }
            let raw = self.text.split_off(start);
            self.text.shrink_to_fit();
            self.text.extend_from_slice(placeholder(self.images.len()).as_bytes());
            let stored = self.images.iter().flatten().count();
            let long_string = self.long_string.insert(LongString::new(stored < IMAGES_MAX));
            let pushed = long_string.push(&raw, &self.documents, &self.clock)?;
            self.malformed = pushed.is_err();
        } else if let Some(long_string) = &mut self.long_string {
            let pushed = long_string.push(run, &self.documents, &self.clock)?;
            self.malformed = pushed.is_err();
        }
        Ok(())
    }

    fn finish_string(&mut self) -> Result<()> {
        self.position = Position::Outside;
        self.text.push(b'"');
        if let Some(long_string) = self.long_string.take() {
            match long_string.finish(&self.clock)? {
                Ok(image) => self.images.push(image),
                Err(Malformed) => self.malformed = true,
            }
        }
        Ok(())
    }

    /// Completes the body and syncs its images. Blocks.
    ///
    /// # Errors
    /// When the images cannot be written.
    pub(super) fn finish(mut self: Box<Self>) -> Result<ParsedBody> {
        if self.malformed || matches!(self.position, Position::InString { .. }) {
            // The parser refuses an empty document.
            self.text.clear();
        }
        let mut images = Vec::with_capacity(self.images.len());
        for image in self.images {
            images.push(match image {
                Some((info, mut object)) => {
                    object.finish(&self.clock)?;
                    Some(ReceivedImage::from_object(info, object))
                }
                None => None,
            });
        }
        let digest = self.digest.finish().as_ref().to_vec();
        Ok(ParsedBody { text: self.text, digest, images })
    }
}

/// Splits `bytes`, which continue a string, at its closing quote: the string's part, true if it ends
/// within an escape, and the bytes after the quote.
fn split_at_quote(bytes: &[u8], mut escaped: bool) -> (&[u8], bool, Option<&[u8]>) {
    if !escaped && !bytes.contains(&b'"') && !bytes.contains(&b'\\') {
        return (bytes, false, None);
    }
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => {
                let (run, rest) = bytes.split_at(at);
                return (run, false, Some(rest.get(1..).unwrap_or_default()));
            }
            _ => {}
        }
    }
    (bytes, escaped, None)
}

/// A string that is too long for memory.
struct LongString {
    decoder: StringDecoder,
    image: PartialImage,
    /// Buffers for the part that is being decoded: its text and its bytes.
    text: Vec<u8>,
    bytes: Vec<u8>,
}

/// The image in a long string.
enum PartialImage {
    /// No byte was read.
    Unknown,
    Image(Box<(Base64Decoder, ImageScanner, ObjectWriter)>),
    /// Not an image, or one too many.
    None,
}

impl LongString {
    const fn new(wanted: bool) -> Self {
        let image = if wanted { PartialImage::Unknown } else { PartialImage::None };
        Self { decoder: StringDecoder::new(), image, text: Vec::new(), bytes: Vec::new() }
    }

    /// Decodes the next raw bytes of the string.
    fn push(
        &mut self,
        raw: &[u8],
        documents: &DocumentStore,
        clock: &Clock,
    ) -> Result<std::result::Result<(), Malformed>> {
        let Self { decoder, image, text, bytes } = self;
        text.clear();
        bytes.clear();
        if let Err(malformed) = decoder.push(raw, text) {
            return Ok(Err(malformed));
        }
        match image {
            PartialImage::None => {}
            PartialImage::Unknown => {
                let (mut base64, mut scanner) = (Base64Decoder::default(), ImageScanner::default());
                let decoded =
                    strip_data_url_header(text).and_then(|encoded| base64.push(encoded, bytes));
                scanner.push(bytes);
                *image = match decoded.and_then(|()| scanner.media_type()) {
                    None => PartialImage::None,
                    Some(_) => {
                        let mut object = documents.create(clock)?;
                        object.push(clock, bytes)?;
                        PartialImage::Image(Box::new((base64, scanner, object)))
                    }
                };
            }
            PartialImage::Image(parts) => {
                let (base64, scanner, object) = &mut **parts;
                match base64.push(text, bytes) {
                    None => *image = PartialImage::None,
                    Some(()) => {
                        scanner.push(bytes);
                        object.push(clock, bytes)?;
                    }
                }
            }
        }
        Ok(Ok(()))
    }

    /// Completes the string and its image, if it is one.
    fn finish(
        self,
        clock: &Clock,
    ) -> Result<std::result::Result<Option<(ImageInfo, ObjectWriter)>, Malformed>> {
        if let Err(malformed) = self.decoder.finish() {
            return Ok(Err(malformed));
        }
        let PartialImage::Image(image) = self.image else { return Ok(Ok(None)) };
        let (base64, mut scanner, mut object) = *image;
        let mut bytes = Vec::new();
        if base64.finish(&mut bytes).is_none() {
            return Ok(Ok(None));
        }
        scanner.push(&bytes);
        object.push(clock, &bytes)?;
        Ok(Ok(scanner.finish().map(|info| (info, object))))
    }
}

#[cfg(test)]
mod tests;
