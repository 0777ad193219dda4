//! A complete upload, as an endpoint receives it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::http::images::ReceivedImage;
use crate::platform::keyed_budget::BudgetShare;

/// A large body that has arrived completely.
#[derive(Debug)]
pub struct UploadedBody {
    /// The JSON with placeholders for its long strings.
    pub(crate) text: Bytes,
    /// SHA-256 of the body as received.
    pub(crate) digest: Vec<u8>,
    images: Mutex<Vec<Option<ReceivedImage>>>,
    _share: Option<BudgetShare<Arc<str>>>,
}

impl UploadedBody {
    pub(super) fn new(
        text: Vec<u8>,
        digest: Vec<u8>,
        images: Vec<Option<ReceivedImage>>,
        share: Option<BudgetShare<Arc<str>>>,
    ) -> Self {
        Self { text: text.into(), digest, images: Mutex::new(images), _share: share }
    }

    /// Takes the image of a placeholder; a second call for the same one gives `None`.
    fn take_image(&self, index: usize) -> Option<ReceivedImage> {
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        images.get_mut(index)?.take()
    }
}

/// The image in a text member of a request, whose body may have been an upload; `None` unless it is
/// a JPEG, PNG or PDF.
pub(crate) fn image(upload: Option<&UploadedBody>, text: &str) -> Option<ReceivedImage> {
    match (upload, placeholder_index(text)) {
        (Some(upload), Some(index)) => upload.take_image(index),
        _ => ReceivedImage::decode(text),
    }
}

/// The index of the long string that a placeholder replaces; `None` for any other text.
pub(super) fn placeholder_index(text: &str) -> Option<usize> {
    text.strip_prefix('\0')?.trim_end_matches(' ').parse().ok()
}
