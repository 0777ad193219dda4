//! The JSON of a large body, read as it comes.

use std::fmt;

use ring::digest;

use super::Ended;
use super::unescaped::{Malformed, Unescaped};
use crate::http::images::{Decoding, Image, Look, Picture, without_url_head};
use crate::http::request::BODY_BYTES_MAX;
use crate::platform::clock::Clock;
use crate::platform::error::Result;
use crate::platform::object_store::{Documents, Part};

/// Bytes of a string above which it is taken out of the text.
const LONG_BYTES: usize = 16 * 1024;
/// Characters of a stand-in: more than any text that a member may be, so that a member which is no
/// image is refused as the long text would have been.
const STAND_IN_CHARS: usize = 2_048;
/// Most images of one body; a further one counts as none.
const IMAGES_MAX: usize = 16;

/// What stands in the text for the long string with this number, as JSON writes it. No text that a
/// member may be begins with U+0000. A client that sends one itself names an image of its own body,
/// or none.
fn stand_in(number: usize) -> String {
    format!("\\u0000{number:<width$}", width = STAND_IN_CHARS)
}

/// The number of the long string that a text stands for.
pub(super) fn stood_for(text: &str) -> Option<usize> {
    text.strip_prefix('\0')?.trim_end_matches(' ').parse().ok()
}

/// A body as far as it has come.
pub(super) struct Reading {
    documents: Documents,
    clock: Clock,
    digest: digest::Context,
    text: Vec<u8>,
    place: Place,
    /// Whether each bracket that is open is an object's.
    open: Vec<bool>,
    /// Whether a string that begins now is a member's name.
    names_next: bool,
    long: Option<Long>,
    found: Vec<Option<(Image, Part)>>,
    malformed: bool,
}

/// Where the next byte stands.
#[derive(Clone, Copy)]
enum Place {
    Between,
    /// In a string that began here in the text.
    In {
        start: usize,
        is_name: bool,
        escaped: bool,
    },
}

/// What there is of a body in the end.
pub(super) struct Whole {
    pub(super) text: Vec<u8>,
    pub(super) digest: Vec<u8>,
    pub(super) pictures: Vec<Option<Picture>>,
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reading(…)")
    }
}

impl Reading {
    pub(super) fn new(documents: Documents, clock: Clock) -> Self {
        Self {
            documents,
            clock,
            digest: digest::Context::new(&digest::SHA256),
            text: Vec::new(),
            place: Place::Between,
            open: Vec::new(),
            names_next: false,
            long: None,
            found: Vec::new(),
            malformed: false,
        }
    }

    /// Reads the next bytes. Blocks. Malformed JSON is no error yet: the size is looked at first.
    ///
    /// # Errors
    /// When there is too much besides images, or they cannot be kept.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        self.digest.update(bytes);
        let mut rest = bytes;
        while !rest.is_empty() && !self.malformed {
            rest = match self.place {
                Place::Between => self.between(rest),
                Place::In { start, is_name, escaped } => {
                    let (run, escaped, later) = until_quote(rest, escaped);
                    self.place = Place::In { start, is_name, escaped };
                    self.part_of_string(run, start, is_name).map_err(|e| super::lost(&e))?;
                    match later {
                        Some(later) => {
                            self.end_of_string().map_err(|e| super::lost(&e))?;
                            later
                        }
                        None => &[],
                    }
                }
            };
            if self.text.len() > BODY_BYTES_MAX {
                return Err(Ended::TooLarge);
            }
        }
        Ok(())
    }

    /// Copies up to the next string, and says what comes behind its quote. Blanks in a row count as
    /// one: nothing in JSON depends on how many there are.
    fn between<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {
                    if self.text.last() != Some(&b' ') {
                        self.text.push(b' ');
                    }
                    continue;
                }
                b'"' => {
                    let (start, is_name) = (self.text.len() + 1, self.names_next);
                    self.place = Place::In { start, is_name, escaped: false };
                    self.names_next = false;
                    self.text.push(b'"');
                    return bytes.get(at + 1..).unwrap_or_default();
                }
                b'{' | b'[' => {
                    self.names_next = *byte == b'{';
                    self.open.push(self.names_next);
                }
                b'}' | b']' => {
                    self.open.pop();
                    self.names_next = false;
                }
                b',' => self.names_next = self.open.last() == Some(&true),
                _ => {}
            }
            self.text.push(*byte);
        }
        &[]
    }

    fn part_of_string(&mut self, run: &[u8], start: usize, is_name: bool) -> Result<()> {
        if self.long.is_none() {
            self.text.extend_from_slice(run);
            if is_name || self.text.len() - start <= LONG_BYTES {
                return Ok(());
            }
            let raw = self.text.split_off(start);
            self.text.extend_from_slice(stand_in(self.found.len()).as_bytes());
            let kept = self.found.iter().flatten().count();
            let long = self.long.insert(Long::new(kept < IMAGES_MAX));
            let read = long.push(&raw, (&self.documents, &self.clock))?;
            self.malformed = read.is_err();
        } else if let Some(long) = &mut self.long {
            let read = long.push(run, (&self.documents, &self.clock))?;
            self.malformed = read.is_err();
        }
        Ok(())
    }

    fn end_of_string(&mut self) -> Result<()> {
        self.place = Place::Between;
        self.text.push(b'"');
        if let Some(long) = self.long.take() {
            match long.finish(&self.clock)? {
                Ok(found) => self.found.push(found),
                Err(Malformed) => self.malformed = true,
            }
        }
        Ok(())
    }

    /// The whole, on the disk. Blocks.
    ///
    /// # Errors
    /// When the images cannot be written.
    pub(super) fn finish(mut self: Box<Self>) -> Result<Whole> {
        if self.malformed || matches!(self.place, Place::In { .. }) {
            // No document is this one: what parses it refuses it.
            self.text.clear();
        }
        let mut pictures = Vec::with_capacity(self.found.len());
        for found in self.found {
            pictures.push(match found {
                Some((image, mut part)) => {
                    part.finish(&self.clock)?;
                    Some(Picture::in_part(image, part))
                }
                None => None,
            });
        }
        let digest = self.digest.finish().as_ref().to_vec();
        Ok(Whole { text: self.text, digest, pictures })
    }
}

/// What of `bytes` belongs to the string that they continue, whether its last byte escapes what
/// comes next, and what comes behind the quote that ends it.
fn until_quote(bytes: &[u8], mut escaped: bool) -> (&[u8], bool, Option<&[u8]>) {
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

/// A string that is too long to be kept in memory.
struct Long {
    unescaped: Unescaped,
    image: ImageSoFar,
}

/// What a long string may be.
enum ImageSoFar {
    /// Nothing of it was looked at.
    Unknown,
    Image(Box<(Decoding, Look, Part)>),
    /// None, or one too many.
    None,
}

impl Long {
    const fn new(wanted: bool) -> Self {
        let image = if wanted { ImageSoFar::Unknown } else { ImageSoFar::None };
        Self { unescaped: Unescaped::new(), image }
    }

    /// The next bytes as they stand in the JSON.
    fn push(
        &mut self,
        raw: &[u8],
        (documents, clock): (&Documents, &Clock),
    ) -> Result<std::result::Result<(), Malformed>> {
        let mut text = Vec::with_capacity(raw.len());
        if let Err(malformed) = self.unescaped.push(raw, &mut text) {
            return Ok(Err(malformed));
        }
        let mut bytes = Vec::new();
        match &mut self.image {
            ImageSoFar::None => {}
            ImageSoFar::Unknown => {
                let (mut decoding, mut look) = (Decoding::default(), Look::default());
                let decoded =
                    without_url_head(&text).and_then(|encoded| decoding.push(encoded, &mut bytes));
                look.push(&bytes);
                self.image = match decoded.and_then(|()| look.media_type()) {
                    None => ImageSoFar::None,
                    Some(_) => {
                        let mut part = documents.begin(clock)?;
                        part.push(clock, &bytes)?;
                        ImageSoFar::Image(Box::new((decoding, look, part)))
                    }
                };
            }
            ImageSoFar::Image(image) => {
                let (decoding, look, part) = &mut **image;
                match decoding.push(&text, &mut bytes) {
                    None => self.image = ImageSoFar::None,
                    Some(()) => {
                        look.push(&bytes);
                        part.push(clock, &bytes)?;
                    }
                }
            }
        }
        Ok(Ok(()))
    }

    /// The image that it was, if it was one.
    fn finish(
        self,
        clock: &Clock,
    ) -> Result<std::result::Result<Option<(Image, Part)>, Malformed>> {
        if let Err(malformed) = self.unescaped.finish() {
            return Ok(Err(malformed));
        }
        let ImageSoFar::Image(image) = self.image else { return Ok(Ok(None)) };
        let (decoding, mut look, mut part) = *image;
        let mut bytes = Vec::new();
        if decoding.finish(&mut bytes).is_none() {
            return Ok(Ok(None));
        }
        look.push(&bytes);
        part.push(clock, &bytes)?;
        Ok(Ok(look.finish().map(|image| (image, part))))
    }
}

#[cfg(test)]
mod tests;
