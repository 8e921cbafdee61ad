//! The comments of a statement, told from what only looks like one: text between quotes is data, whatever it says.

use crate::store::engine::Quoting;

/// Comments of one statement that are looked at.
const AT_MOST: usize = 64;

/// What stands in a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Comment<'a> {
    /// Without what begins and ends it.
    pub(super) text: &'a str,
    /// Its end was seen, and is not where somebody cut the statement.
    pub(super) whole: bool,
}

/// The comments of `statement`, in order. Where it was `cut`, what is open at its end stays open: of a literal nothing is
/// read, of a comment what is there.
pub(super) fn comments(statement: &str, cut: bool, quoting: Quoting) -> Vec<Comment<'_>> {
    let mut reader = Reader { text: statement, bytes: statement.as_bytes(), at: 0, quoting };
    let mut found = Vec::new();
    while found.len() < AT_MOST {
        match reader.next(cut) {
            Some(comment) => found.push(comment),
            None => break,
        }
    }
    found
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    quoting: Quoting,
}

impl<'a> Reader<'a> {
    fn next(&mut self, cut: bool) -> Option<Comment<'a>> {
        while let Some(&byte) = self.bytes.get(self.at) {
            let following = self.bytes.get(self.at + 1).copied();
            match byte {
                b'\'' => self.skip_quoted(b'\'', self.quoting.backslashes || self.is_after_e()),
                b'"' => self.skip_quoted(b'"', self.quoting.backslashes),
                b'`' if self.quoting.backticks => self.skip_quoted(b'`', false),
                b'$' if self.quoting.dollars => self.skip_dollars(),
                b'-' if following == Some(b'-') => return Some(self.line(2, cut)),
                b'#' if self.quoting.hashes => return Some(self.line(1, cut)),
                b'/' if following == Some(b'*') => return Some(self.block()),
                _ => self.at += 1,
            }
        }
        None
    }

    /// Whether the quote at hand belongs to an `E'…'`.
    fn is_after_e(&self) -> bool {
        let before = |n: usize| self.at.checked_sub(n).and_then(|at| self.bytes.get(at)).copied();
        matches!(before(1), Some(b'e' | b'E')) && !before(2).is_some_and(continues_a_word)
    }

    /// A doubled quote ends one piece and begins the next, which comes to the same.
    fn skip_quoted(&mut self, quote: u8, backslashes: bool) {
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            if byte == b'\\' && backslashes {
                self.at += 1;
            } else if byte == quote {
                return;
            }
        }
    }

    /// Past `$tag$…$tag$`, or past the one character where it begins none: `$1`, or a name with a dollar in it.
    fn skip_dollars(&mut self) {
        let start = self.at;
        self.at += 1;
        if start.checked_sub(1).is_some_and(|before| continues_a_word(self.bytes[before])) {
            return;
        }
        let word = self.bytes[self.at..].iter().take_while(|&&byte| byte != b'$' && continues_a_word(byte)).count();
        let end_of_tag = self.at + word;
        if self.bytes.get(end_of_tag) != Some(&b'$') || self.bytes[self.at].is_ascii_digit() {
            return;
        }
        let tag = &self.text[start..=end_of_tag];
        let body = end_of_tag + 1;
        self.at = self.text[body..].find(tag).map_or(self.bytes.len(), |end| body + end + tag.len());
    }

    fn line(&mut self, opening: usize, cut: bool) -> Comment<'a> {
        let rest = &self.text[self.at + opening..];
        let (text, whole) = match rest.split_once(['\n', '\r']) {
            Some((line, _)) => (line, true),
            None => (rest, !cut),
        };
        self.at += opening + text.len();
        Comment { text, whole }
    }

    fn block(&mut self) -> Comment<'a> {
        let start = self.at + 2;
        self.at = start;
        let mut depth = 1_usize;
        while self.at < self.bytes.len() {
            match &self.bytes[self.at..] {
                [b'*', b'/', ..] => {
                    self.at += 2;
                    depth -= 1;
                    if depth == 0 {
                        return Comment { text: &self.text[start..self.at - 2], whole: true };
                    }
                }
                [b'/', b'*', ..] if self.quoting.nesting => {
                    self.at += 2;
                    depth += 1;
                }
                _ => self.at += 1,
            }
        }
        Comment { text: &self.text[start..], whole: false }
    }
}

fn continues_a_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POSTGRES: Quoting =
        Quoting { backslashes: false, dollars: true, backticks: false, hashes: false, nesting: true };
    const MYSQL: Quoting = Quoting { backslashes: true, dollars: false, backticks: true, hashes: true, nesting: false };

    fn texts(statement: &str, quoting: Quoting) -> Vec<&str> {
        comments(statement, false, quoting).into_iter().map(|comment| comment.text).collect()
    }

    #[test]
    fn comments_of_every_form_are_found() {
        let statement = "/*a*/ select 1 -- b\n, 2 /* c */ -- d";
        assert_eq!(texts(statement, POSTGRES), ["a", " b", " c ", " d"]);
        assert_eq!(texts("select 1 # a\n/*! b */", MYSQL), [" a", "! b "]);
        assert_eq!(texts("select 1 # 2 /*a*/", POSTGRES), ["a"], "an operator");
    }

    #[test]
    fn what_stands_between_quotes_is_no_comment() {
        for (quoting, statement) in [
            (POSTGRES, "select '/*a*/', \"/*b*/\", $$/*c*/$$, $x$ $$ /*d*/ $x$, e'\\'/*e*/', 'it''s /*f*/'"),
            (POSTGRES, "select '\\', '/*a*/'"),
            (MYSQL, "select '\\'/*a*/', \"\\\"/*b*/\", `/*c*/`"),
            (POSTGRES, "select '-- a"),
            (POSTGRES, "select $q$ /*a*/"),
        ] {
            assert_eq!(texts(statement, quoting), [] as [&str; 0], "{statement}");
        }
    }

    #[test]
    fn what_only_looks_like_a_quote_hides_nothing() {
        for statement in
            ["select $1, $2 /*a*/", "select a$b$c /*a*/", "select date'\\' /*a*/", "select '\\', E'\\'' /*a*/"]
        {
            assert_eq!(texts(statement, POSTGRES), ["a"], "{statement}");
        }
    }

    #[test]
    fn comments_nest_where_the_engine_has_it_so() {
        assert_eq!(texts("/* a /* b */ c */ select /*d*/ 1", POSTGRES), [" a /* b */ c ", "d"]);
        assert_eq!(texts("/* a /* b */ c */ select /*d*/ 1", MYSQL), [" a /* b ", "d"]);
    }

    #[test]
    fn what_was_cut_is_not_whole() {
        assert_eq!(comments("/* a", false, POSTGRES), [Comment { text: " a", whole: false }]);
        assert_eq!(comments("-- a", true, POSTGRES), [Comment { text: " a", whole: false }]);
        assert_eq!(comments("-- a", false, POSTGRES), [Comment { text: " a", whole: true }]);
        assert_eq!(comments("-- a\n", true, POSTGRES), [Comment { text: " a", whole: true }]);
        assert_eq!(comments("/*/", true, POSTGRES), [Comment { text: "/", whole: false }]);
    }

    #[test]
    fn no_more_than_so_many_comments_are_looked_at() {
        assert_eq!(comments(&"/**/".repeat(10_000), false, POSTGRES).len(), AT_MOST);
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(statement in "[-/*'\"$#`\\\\eE\\na\u{e9}]{0,200}", cut: bool) {
            for quoting in [POSTGRES, MYSQL, Quoting::default()] {
                for comment in comments(&statement, cut, quoting) {
                    prop_assert!(statement.contains(comment.text));
                }
            }
        }

        #[test]
        fn a_comment_behind_any_literal_is_found(data in "[^\\\\]{0,80}") {
            let quoted = data.replace('\'', "''");
            let statement = format!("select '{quoted}' /*here*/");
            prop_assert_eq!(texts(&statement, POSTGRES), ["here"]);
            prop_assert_eq!(texts(&statement, MYSQL), ["here"]);
        }
    }
}
