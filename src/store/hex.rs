//! Bytes as they stand in lists of parameters, where `unhex` reads them.

use crate::model::LeaseId;

/// Two lower-case digits for each byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// A lease's bits.
pub(super) fn lease_hex(lease: LeaseId) -> String {
    hex(&lease.0.to_be_bytes())
}
