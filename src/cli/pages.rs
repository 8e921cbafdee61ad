//! Lists that come in pages.

use super::{broker::Failed, exit};

/// Things of a page at most. The broker bounds the bytes of one by itself.
pub(super) const PAGE: u32 = 1_000;

/// Asks for pages of at most `largest` until there are `limit` things or no more, and says where there are more. `ask` gets a size and
/// a page token and gives things and the next token; `each` gets the things of a page.
pub(super) async fn walk<T>(
    limit: u32,
    largest: u32,
    mut ask: impl AsyncFnMut(u32, String) -> Result<(Vec<T>, String), Failed>,
    mut each: impl FnMut(Vec<T>) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let (mut left, mut token) = (limit, String::new());
    while left > 0 {
        let (things, next) = ask(left.min(largest), token).await?;
        left = left.saturating_sub(u32::try_from(things.len()).unwrap_or(u32::MAX));
        each(things)?;
        if next.is_empty() {
            return Ok(());
        }
        token = next;
    }
    exit::note(&format_args!("there may be more than these {limit}: --limit"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn walked(limit: u32, pages: &[&[u32]]) -> (Vec<u32>, Vec<u32>) {
        let (mut asked, mut got) = (Vec::new(), Vec::new());
        let mut pages = pages.iter().enumerate();
        let last = pages.len();
        let ask = async |size, _token: String| {
            asked.push(size);
            let (n, page) = pages.next().expect("not asked after the last page");
            Ok((page.to_vec(), if n + 1 == last { String::new() } else { n.to_string() }))
        };
        walk(limit, 3, ask, |things| {
            got.extend(things);
            Ok(())
        })
        .await
        .expect("no failure");
        (asked, got)
    }

    #[tokio::test]
    async fn an_empty_page_in_the_middle_is_not_the_end() {
        assert_eq!(walked(100, &[&[1, 2, 3], &[], &[4]]).await, (vec![3, 3, 3], vec![1, 2, 3, 4]));
    }

    #[tokio::test]
    async fn no_more_is_asked_for_than_was_wanted() {
        assert_eq!(walked(4, &[&[1, 2, 3], &[4], &[5]]).await, (vec![3, 1], vec![1, 2, 3, 4]));
    }
}
