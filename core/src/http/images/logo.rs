//! Logos: PNG images that are taken apart and written anew, so that nothing but pixels is left of what
//! was sent (PNG, third edition, W3C 2025).

use std::io::{Read as _, Write as _};

use crc32fast::hash as crc32;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// Largest logo that is read, in bytes.
pub(crate) const LOGO_BYTES_MAX: usize = 64 * 1024;
/// Largest width and height, in pixels.
pub(crate) const LOGO_PIXELS_MAX: u32 = 1_024;

const SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n'];
/// Bytes of a chunk besides its data: length, type and checksum.
const CHUNK_FRAME: usize = 12;
/// Bytes of the header's data.
const HEADER_BYTES: usize = 13;
/// Most bytes of a palette: 256 colours.
const PALETTE_BYTES_MAX: usize = 768;
/// Bytes of rows that are packed before the result is looked at.
const PACKED_AT_ONCE: usize = 16 * 1024;
/// Highest number of a filter.
const FILTER_MAX: u8 = 4;

/// Takes a PNG apart and writes it anew. `None` unless it is a whole one, not interlaced, within
/// [`LOGO_BYTES_MAX`] and [`LOGO_PIXELS_MAX`].
pub(crate) fn sanitise(png: &[u8]) -> Option<Vec<u8>> {
    let chunks = Chunks::read(png)?;
    let row_bytes = row_bytes(&chunks.header)?;
    let height = usize::try_from(be32(&chunks.header[4..8])?).ok()?;
    let size = (row_bytes + 1).checked_mul(height)?;
    let mut rows = Vec::with_capacity(size);
    // One byte more than there may be tells a longer stream.
    let limit = u64::try_from(size).ok()? + 1;
    ZlibDecoder::new(&*chunks.pixels).take(limit).read_to_end(&mut rows).ok()?;
    let is_whole = rows.len() == size;
    if !is_whole || rows.chunks(row_bytes + 1).any(|row| row[0] > FILTER_MAX) {
        return None;
    }
    let packed = pack(&rows)?;
    let mut written = SIGNATURE.to_vec();
    push(&mut written, b"IHDR", &chunks.header)?;
    if let Some(palette) = &chunks.palette {
        push(&mut written, b"PLTE", palette)?;
    }
    if let Some(transparency) = &chunks.transparency {
        push(&mut written, b"tRNS", transparency)?;
    }
    push(&mut written, b"IDAT", &packed)?;
    push(&mut written, b"IEND", &[])?;
    Some(written)
}

/// Packs rows of pixels; `None` once they take more than [`LOGO_BYTES_MAX`]. Some pixels that whoever
/// sent them has packed into less take seconds to pack so badly.
fn pack(rows: &[u8]) -> Option<Vec<u8>> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    for part in rows.chunks(PACKED_AT_ONCE) {
        packed.write_all(part).ok()?;
        if packed.get_ref().len() > LOGO_BYTES_MAX {
            return None;
        }
    }
    packed.finish().ok().filter(|packed| packed.len() <= LOGO_BYTES_MAX)
}

/// The chunks that make pixels.
struct Chunks {
    header: [u8; HEADER_BYTES],
    palette: Option<Vec<u8>>,
    transparency: Option<Vec<u8>>,
    pixels: Vec<u8>,
}

impl Chunks {
    /// Reads a whole file. What is no pixels is left out: texts, times, profiles, metadata.
    fn read(png: &[u8]) -> Option<Self> {
        let mut rest = png.strip_prefix(&SIGNATURE).filter(|_| png.len() <= LOGO_BYTES_MAX)?;
        let (kind, data) = chunk(&mut rest)?;
        let header = data.try_into().ok().filter(|_| kind == *b"IHDR")?;
        let mut chunks = Self { header, palette: None, transparency: None, pixels: Vec::new() };
        loop {
            let (kind, data) = chunk(&mut rest)?;
            match &kind {
                b"PLTE" if chunks.palette.is_none() && chunks.pixels.is_empty() => {
                    chunks.palette = Some(data.to_vec());
                }
                b"tRNS" if chunks.transparency.is_none() && chunks.pixels.is_empty() => {
                    chunks.transparency = Some(data.to_vec());
                }
                b"IDAT" => chunks.pixels.extend_from_slice(data),
                b"IEND" => break,
                // Any other critical chunk changes what the pixels mean.
                _ if kind[0].is_ascii_uppercase() => return None,
                _ => {}
            }
        }
        let palette = chunks.palette.as_ref().map_or(0, Vec::len);
        let transparency = chunks.transparency.as_ref().map_or(0, Vec::len);
        let is_indexed = chunks.header[9] == 3;
        let fits = palette.is_multiple_of(3)
            && palette <= PALETTE_BYTES_MAX
            && is_indexed == (palette > 0)
            && transparency <= if is_indexed { palette / 3 } else { 6 };
        fits.then_some(chunks)
    }
}

/// Takes the next chunk whose checksum is right.
fn chunk<'a>(rest: &mut &'a [u8]) -> Option<([u8; 4], &'a [u8])> {
    let length = usize::try_from(be32(rest.get(..4)?)?).ok()?;
    let end = length.checked_add(CHUNK_FRAME)?;
    let whole = rest.get(..end)?;
    let (typed, checksum) = (whole.get(4..end - 4)?, be32(whole.get(end - 4..)?)?);
    if crc32(typed) != checksum {
        return None;
    }
    *rest = &rest[end..];
    let (kind, data) = typed.split_first_chunk::<4>()?;
    Some((*kind, data))
}

/// Bytes of a row of pixels; `None` for a header that is none of a logo's.
fn row_bytes(header: &[u8; HEADER_BYTES]) -> Option<usize> {
    let (width, height) = (be32(&header[..4])?, be32(&header[4..8])?);
    let [depth, colour, compression, filter, interlace] = *header.last_chunk::<5>()?;
    let samples = match (colour, depth) {
        (0, 1 | 2 | 4 | 8 | 16) | (3, 1 | 2 | 4 | 8) => 1,
        (2, 8 | 16) => 3,
        (4, 8 | 16) => 2,
        (6, 8 | 16) => 4,
        _ => return None,
    };
    let sides = 1..=LOGO_PIXELS_MAX;
    let is_plain = (compression, filter, interlace) == (0, 0, 0);
    if !is_plain || !sides.contains(&width) || !sides.contains(&height) {
        return None;
    }
    let bits = u64::from(width) * samples * u64::from(depth);
    usize::try_from(bits.div_ceil(8)).ok()
}

fn be32(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}

fn push(png: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) -> Option<()> {
    png.extend(u32::try_from(data.len()).ok()?.to_be_bytes());
    let typed = [kind, data].concat();
    png.extend(&typed);
    png.extend(crc32(&typed).to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A PNG of 2 × 2 pixels in RGB with these rows and a comment.
    fn png(rows: &[u8], change: impl FnOnce(&mut [u8; HEADER_BYTES])) -> Vec<u8> {
        let mut header = [0, 0, 0, 2, 0, 0, 0, 2, 8, 2, 0, 0, 0];
        change(&mut header);
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(rows).unwrap();
        let mut png = SIGNATURE.to_vec();
        push(&mut png, b"IHDR", &header).unwrap();
        push(&mut png, b"tEXt", b"Comment\0<script>").unwrap();
        let packed = packed.finish().unwrap();
        let (head, tail) = packed.split_at(3);
        push(&mut png, b"IDAT", head).unwrap();
        push(&mut png, b"IDAT", tail).unwrap();
        push(&mut png, b"IEND", &[]).unwrap();
        png.extend(b"appended");
        png
    }

    const ROWS: [u8; 14] = [0, 1, 2, 3, 4, 5, 6, 1, 1, 2, 3, 4, 5, 6];

    #[test]
    fn nothing_but_pixels_is_left() {
        let clean = sanitise(&png(&ROWS, |_| ())).unwrap();
        for gone in [&b"script"[..], b"tEXt", b"appended"] {
            assert!(!clean.windows(gone.len()).any(|window| window == gone));
        }
        let chunks = Chunks::read(&clean).unwrap();
        let mut rows = Vec::new();
        ZlibDecoder::new(&*chunks.pixels).read_to_end(&mut rows).unwrap();
        assert_eq!(rows, ROWS);
        assert_eq!(sanitise(&clean).unwrap(), clean);
    }

    #[test]
    fn what_is_no_whole_png_is_refused() {
        let whole = png(&ROWS, |_| ());
        let mut broken = whole.clone();
        broken[20] ^= 1;
        for bad in [
            b"GIF89a".to_vec(),
            whole[..whole.len() - 30].to_vec(),
            broken,
            png(&ROWS[..13], |_| ()),
            png(&[&ROWS[..], &[0]].concat(), |_| ()),
            png(&[9; 14], |_| ()),
            png(&ROWS, |header| header[2] = 200),
            png(&ROWS, |header| header[12] = 1),
            png(&ROWS, |header| header[8] = 3),
            vec![0; LOGO_BYTES_MAX + 1],
        ] {
            assert!(sanitise(&bad).is_none());
        }
    }

    #[test]
    fn a_small_file_with_many_pixels_is_not_unpacked() {
        let many = vec![0; 50 * 1024 * 1024];
        assert!(sanitise(&png(&many, |_| ())).is_none());
    }

    #[test]
    fn pixels_that_do_not_pack_are_given_up() {
        let flat = vec![7; 4 * LOGO_BYTES_MAX];
        assert!(pack(&flat).is_some_and(|packed| packed.len() < LOGO_BYTES_MAX));
        let noise: Vec<u8> = (0_u32..)
            .take(LOGO_BYTES_MAX)
            .flat_map(|at| crc32(&at.to_be_bytes()).to_be_bytes())
            .collect();
        assert!(pack(&noise).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(at in 0_usize..120, byte: u8, cut in 0_usize..120) {
            let mut png = png(&ROWS, |_| ());
            let index = at % png.len();
            png[index] = byte;
            let _ = (sanitise(&png), sanitise(&png[..cut.min(png.len())]));
        }
    }
}
