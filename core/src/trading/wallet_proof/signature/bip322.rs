//! BIP-322 in its simple form: the witness of a virtual transaction that spends a virtual output of
//! the address. By key alone: segregated witness of version 0 (BIP-143) and Taproot (BIP-341).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secp256k1::{Message, PublicKey, XOnlyPublicKey, ecdsa, schnorr};

use super::bitcoin::{hash160, sized};
use super::{sha256, sha256d};

/// All inputs and outputs are signed.
const SIGHASH_ALL: u8 = 0x01;
/// The same, as Taproot leaves it out.
const SIGHASH_DEFAULT: u8 = 0x00;
/// Most items of a witness by key.
const ITEMS_MAX: u8 = 2;
/// Version, lock time, sequence and value of the virtual transactions: all of them zero.
const VERSION: [u8; 4] = [0; 4];
const LOCK_TIME: [u8; 4] = [0; 4];
const SEQUENCE: [u8; 4] = [0; 4];
const VALUE: [u8; 8] = [0; 8];
/// The script of the only output: it can never be spent.
const OP_RETURN: [u8; 1] = [0x6a];

/// The witness spends what the address holds.
pub(super) fn verify(address: &str, message: &str, signature: &str) -> Option<()> {
    let bytes = STANDARD.decode(signature.strip_prefix("smp").unwrap_or(signature)).ok()?;
    let witness = items(&bytes)?;
    let (_, version, program) = bech32::segwit::decode(address).ok()?;
    match (version.to_u8(), program.len(), &witness[..]) {
        (0, 20, [signature, key]) => by_key_hash(&program, message, signature, key),
        (1, 32, [signature]) => by_taproot(&program, message, signature),
        _ => None,
    }
}

/// The items of a witness; `None` unless they are all of the bytes.
fn items(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let (count, mut rest) = bytes.split_first()?;
    if *count > ITEMS_MAX {
        return None;
    }
    let mut items = Vec::new();
    for _ in 0..*count {
        // No item by key has a length of more than one byte.
        let (length, after) = rest.split_first().filter(|(length, _)| **length < 0xfd)?;
        let (item, after) = after.split_at_checked(usize::from(*length))?;
        items.push(item);
        rest = after;
    }
    rest.is_empty().then_some(items)
}

fn by_key_hash(program: &[u8], message: &str, signature: &[u8], key: &[u8]) -> Option<()> {
    let (sighash, der) = signature.split_last()?;
    if *sighash != SIGHASH_ALL || key.len() != 33 || hash160(key) != program {
        return None;
    }
    let key = PublicKey::from_slice(key).ok()?;
    let signature = ecdsa::Signature::from_der(der).ok()?;
    let message = Message::from_digest(key_hash_sighash(program, message));
    ecdsa::verify(&signature, message, &key).ok()
}

fn by_taproot(program: &[u8], message: &str, signature: &[u8]) -> Option<()> {
    let (sighash, signature) = match signature.len() {
        64 => (SIGHASH_DEFAULT, signature),
        65 => (*signature.last()?, signature.get(..64)?),
        _ => return None,
    };
    if signature.len() != 64 || !matches!(sighash, SIGHASH_DEFAULT | SIGHASH_ALL) {
        return None;
    }
    let key = XOnlyPublicKey::from_byte_array(program.try_into().ok()?).ok()?;
    let signature = schnorr::Signature::from_byte_array(signature.try_into().ok()?);
    schnorr::verify(&signature, &taproot_sighash(program, message, sighash), &key).ok()
}

/// BIP-143 of the transaction that spends.
fn key_hash_sighash(program: &[u8], message: &str) -> [u8; 32] {
    let outpoint = outpoint(&script(0x00, program), message);
    let key_script = [&[0x19, 0x76, 0xa9, 0x14][..], program, &[0x88, 0xac]].concat();
    let parts: [&[u8]; 10] = [
        &VERSION,
        &sha256d(&outpoint),
        &sha256d(&SEQUENCE),
        &outpoint,
        &key_script,
        &VALUE,
        &SEQUENCE,
        &sha256d(&output()),
        &LOCK_TIME,
        &[SIGHASH_ALL, 0, 0, 0],
    ];
    sha256d(&parts.concat())
}

/// BIP-341 of the transaction that spends, by its key.
fn taproot_sighash(program: &[u8], message: &str, sighash: u8) -> [u8; 32] {
    let script = script(0x51, program);
    let parts: [&[u8]; 10] = [
        &[0x00, sighash],
        &VERSION,
        &LOCK_TIME,
        &sha256(&outpoint(&script, message)),
        &sha256(&VALUE),
        &sha256(&sized(&script)),
        &sha256(&SEQUENCE),
        &sha256(&output()),
        // Spent by key, without an annex.
        &[0x00],
        // The only input.
        &[0; 4],
    ];
    tagged("TapSighash", &parts.concat())
}

/// The output that is spent: of a transaction that commits to the message.
fn outpoint(script: &[u8], message: &str) -> Vec<u8> {
    let message_hash = tagged("BIP0322-signed-message", message.as_bytes());
    let parts: [&[u8]; 11] = [
        &VERSION,
        &[0x01],
        &[0x00; 32],
        &[0xff; 4],
        &[0x22, 0x00, 0x20],
        &message_hash,
        &SEQUENCE,
        &[0x01],
        &VALUE,
        &sized(script),
        &LOCK_TIME,
    ];
    [&sha256d(&parts.concat())[..], &[0; 4]].concat()
}

/// The only output of the transaction that spends.
fn output() -> Vec<u8> {
    [&VALUE[..], &sized(&OP_RETURN)].concat()
}

/// The script of a segregated witness address: its version's opcode and its program.
fn script(opcode: u8, program: &[u8]) -> Vec<u8> {
    [&[opcode][..], &sized(program)].concat()
}

/// BIP-340's tagged hash.
fn tagged(tag: &str, bytes: &[u8]) -> [u8; 32] {
    let tag = sha256(tag.as_bytes());
    sha256(&[&tag[..], &tag, bytes].concat())
}
