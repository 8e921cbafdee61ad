//! Other people's text, made harmless: nothing that they wrote reaches a terminal as anything but text.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

/// `text` on one line, with everything that steers a terminal, or hides or turns text around, written out.
pub(in crate::cli) fn text(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        push(&mut shown, c);
        shown
    })
}

/// Bytes that are most likely text; those that are not are written as `\xff`.
pub(in crate::cli) fn bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            push(&mut shown, c);
        }
        for byte in chunk.invalid() {
            write!(shown, "\\x{byte:02x}").expect("writing to a String cannot fail");
        }
    }
    shown
}

/// JSON whose texts hold no character that steers a terminal. It says the same as before.
pub(in crate::cli) fn json(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        // all of them stand within texts, and none is beyond the first plane
        if steers(c) {
            write!(shown, "\\u{:04x}", u32::from(c)).expect("writing to a String cannot fail");
        } else {
            shown.push(c);
        }
        shown
    })
}

/// `text` in at most `width` columns; what was cut shows.
pub(in crate::cli) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// Columns that `text` takes on a terminal.
pub(in crate::cli) fn columns(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

fn push(shown: &mut String, c: char) {
    match c {
        '\\' => shown.push_str("\\\\"),
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        c if steers(c) => write!(shown, "\\u{{{:x}}}", u32::from(c)).expect("writing to a String cannot fail"),
        c => shown.push(c),
    }
}

/// Control characters, line and paragraph separators, and those that change the direction of text or take no room.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_steers_a_terminal_is_written_out() {
        assert_eq!(text("a\u{1b}[31mb\u{9b}2J\r\n\t\u{7f}"), "a\\u{1b}[31mb\\u{9b}2J\\r\\n\\t\\u{7f}");
        assert_eq!(text("invoice \u{202e}fdp.exe"), "invoice \\u{202e}fdp.exe");
        assert_eq!(text("C:\\new"), "C:\\\\new");
        assert_eq!(text("Grüße, 世界 🦀"), "Grüße, 世界 🦀");
    }

    #[test]
    fn bytes_that_are_no_text_are_numbers() {
        assert_eq!(bytes(b"ok \xff\xfe\0"), "ok \\xff\\xfe\\u{0}");
    }

    #[test]
    fn a_long_text_is_cut_by_columns_and_shows_it() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!(cut("世界世界", 5), "世界…");
    }

    proptest! {
        #[test]
        fn no_text_reaches_a_terminal_with_a_control_character(raw in any::<Vec<u8>>()) {
            prop_assert!(!bytes(&raw).chars().any(steers));
            let said = String::from_utf8_lossy(&raw);
            prop_assert!(!text(&said).chars().any(steers));
        }

        #[test]
        fn escaped_json_says_the_same(said in any::<String>()) {
            let shown = json(&serde_json::to_string(&said).expect("a text"));
            prop_assert!(!shown.chars().any(steers));
            let read: String = serde_json::from_str(&shown).expect("still JSON");
            prop_assert_eq!(read, said);
        }
    }
}
