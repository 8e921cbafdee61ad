//! Pages of lists, and the tokens that lead from one to the next.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use crate::model::Invalid;

/// Rows on a page where the request says nothing.
const USUAL: usize = 100;
/// Rows on a page at most.
const MOST: u32 = 1_000;
/// Bytes of a token's check.
const CHECK: usize = 8;

/// How many rows a page may have.
pub(super) fn page_size(sent: u32) -> Result<usize, Invalid> {
    match sent {
        0 => Ok(USUAL),
        1..=MOST => Ok(sent as usize),
        _ => Err(Invalid::new("page_size", format!("must be 1 to {MOST}"))),
    }
}

/// The token of the page behind `place`. `list` names the list and what it was asked for, so that a token is good for the
/// same question alone.
pub(super) fn page_token(list: &str, place: &str) -> String {
    let mut bytes = check(list, place.as_bytes()).to_vec();
    bytes.extend_from_slice(place.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The place that a token stands for; `None` for the first page.
pub(super) fn place(list: &str, token: &str) -> Result<Option<String>, Invalid> {
    if token.is_empty() {
        return Ok(None);
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
    let known = bytes.split_at_checked(CHECK).filter(|(sum, place)| *sum == check(list, place));
    let place = known.and_then(|(_, place)| String::from_utf8(place.to_vec()).ok());
    place
        .map(Some)
        .ok_or_else(|| Invalid::new("page_token", "must be the next_page_token of an answer to the same question"))
}

fn check(list: &str, place: &[u8]) -> [u8; CHECK] {
    let mut hash = Sha256::new();
    hash.update((list.len() as u64).to_be_bytes());
    hash.update(list);
    hash.update(place);
    let hash = hash.finalize();
    let mut check = [0; CHECK];
    check.copy_from_slice(&hash[..CHECK]);
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_its_place() {
        assert_eq!(place("queues", ""), Ok(None));
        for text in ["", "orders", "é\0"] {
            assert_eq!(place("queues", &page_token("queues", text)), Ok(Some(text.to_owned())));
        }
    }

    #[test]
    fn a_token_of_another_question_and_a_made_up_one_are_refused() {
        let token = page_token("queues prefix=a", "orders");
        let longer = format!("{token}A");
        for made_up in [longer.as_str(), &token[..token.len() - 2], "x", "====", "AAAAAAAAAAAAAAAA", "é"] {
            assert_eq!(place("queues prefix=a", made_up).expect_err(made_up).field, "page_token");
        }
        assert!(place("queues prefix=b", &token).is_err());
    }

    #[test]
    fn a_page_has_one_to_a_thousand_rows() {
        assert_eq!(page_size(0), Ok(100));
        assert_eq!(page_size(1), Ok(1));
        assert_eq!(page_size(1_000), Ok(1_000));
        for wrong in [1_001, u32::MAX] {
            assert_eq!(page_size(wrong).expect_err("too many").field, "page_size");
        }
    }
}
