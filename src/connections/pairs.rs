//! Keys and values in a comment: sqlcommenter's `key='value'`, and the older `key:value`.

use super::comments::Comment;

/// Pairs of one comment that are looked at.
const AT_MOST: usize = 64;

/// The pairs that a comment consists of, decoded. What is no such list has none, apart from those before the first mistake.
pub(super) fn pairs(comment: Comment<'_>) -> Vec<(String, String)> {
    let found = quoted(comment.text);
    if found.is_empty() && comment.whole { plain(comment.text) } else { found }
}

/// `key='value',key='value'`: both percent-encoded, quotes in values behind a backslash. A value without its closing quote, as
/// of a statement that was cut, is none.
fn quoted(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while found.len() < AT_MOST
        && let Some((key, after)) = rest.split_once("='")
        && is_key(key)
        && let Some((value, after)) = value(after)
    {
        found.push((decoded(key), decoded(&value)));
        match after.trim_start().strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None => break,
        }
    }
    found
}

/// Up to the closing quote, without the backslashes, and what is behind it.
fn value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => value.push(characters.next()?.1),
            '\'' => return Some((value, &text[at + 1..])),
            _ => value.push(c),
        }
    }
    None
}

/// `key:value,key:value` without a space or quote, as Rails writes it.
fn plain(text: &str) -> Vec<(String, String)> {
    let text = text.trim();
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\'' || c == '"') {
        return Vec::new();
    }
    let pair = |part: &str| {
        let (key, value) = part.split_once(':')?;
        is_key(key).then(|| (key.to_owned(), value.to_owned()))
    };
    text.split(',').take(AT_MOST).map_while(pair).collect()
}

fn is_key(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'%'))
}

/// A text without its percent encoding; what is malformed in it stays as it is.
fn decoded(text: &str) -> String {
    let hex =
        |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16)).and_then(|n| u8::try_from(n).ok());
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if let (b'%', Some(high), Some(low)) = (byte, hex(bytes.get(at + 1)), hex(bytes.get(at + 2))) {
            plain.push(high << 4 | low);
            at += 3;
        } else {
            plain.push(byte);
            at += 1;
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        pairs(Comment { text, whole: true })
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn pairs_are_decoded() {
        assert_eq!(
            read(" action='%2Forders%2F%3Aid',db_driver='django%3A4',framework='it\\'s' "),
            [pair("action", "/orders/:id"), pair("db_driver", "django:4"), pair("framework", "it's")]
        );
        assert_eq!(read("a='1' , b='2'"), [pair("a", "1"), pair("b", "2")]);
        assert_eq!(read("a=''"), [pair("a", "")]);
        assert_eq!(read("a='%zz%4'"), [pair("a", "%zz%4")]);
        assert_eq!(read("a='%e4'"), [pair("a", "\u{fffd}")]);
    }

    #[test]
    fn the_older_form_is_read_where_the_whole_comment_is_one() {
        assert_eq!(
            read("application:Shop,controller:orders"),
            [pair("application", "Shop"), pair("controller", "orders")]
        );
        assert_eq!(read(" application:Shop "), [pair("application", "Shop")]);
        assert_eq!(read("see application: shop"), []);
        assert_eq!(pairs(Comment { text: "application:Sho", whole: false }), []);
    }

    #[test]
    fn what_was_cut_or_is_malformed_ends_the_list() {
        assert_eq!(read("a='1',b='2"), [pair("a", "1")]);
        assert_eq!(read("a='1',b='\\"), [pair("a", "1")]);
        assert_eq!(read("a='1';drop,b='2'"), [pair("a", "1")]);
        assert_eq!(read("this is how a='1' is written"), []);
        for nothing in ["", "'", "='", "=''", ",", "a=", "a='", "a=1"] {
            assert_eq!(read(nothing), [], "{nothing:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(text in any::<String>(), whole: bool) {
            let found = pairs(Comment { text: &text, whole });
            prop_assert!(found.len() <= AT_MOST);
        }

        #[test]
        fn what_was_encoded_comes_back(value in any::<String>()) {
            let encoded = value.bytes().fold(String::new(), |text, byte| text + &format!("%{byte:02X}"));
            prop_assert_eq!(read(&format!("k='{encoded}'")), [pair("k", &value)]);
            let escaped = value.replace('\\', "\\\\").replace('\'', "\\'");
            prop_assume!(!value.contains('%'));
            prop_assert_eq!(read(&format!("k='{escaped}'")), [pair("k", &value)]);
        }
    }
}
