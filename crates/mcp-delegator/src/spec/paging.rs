//! Pagination with opaque cursors.
//!
//! A cursor contains the index of the next item, the number of its page, the limit of the query and a
//! fingerprint of it. A cursor of another query, or one made by hand, is refused; otherwise it would silently
//! return the wrong items. A page that exceeds the size limit of the output ends after any of its items, so a
//! cursor can be made after each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{AppError, ErrorCode, Problem};

/// The largest page, which is also the default: a list is usually shorter.
pub const MAX_PAGE_SIZE: u32 = 1000;

/// Pagination inputs.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Paging {
    /// Items per page (default: 1000)
    #[schemars(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// From the previous page
    #[schemars(length(min = 1, max = 512))]
    pub cursor: Option<String>,
}

/// Which part of a list the output contains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Page {
    #[serde(rename = "page")]
    pub number: usize,
    /// The requested size of a page, not the number of its items.
    #[serde(rename = "page_size")]
    pub size: usize,
    #[serde(rename = "total_count")]
    pub total: usize,
    #[serde(rename = "filtered_count")]
    pub filtered: usize,
    #[serde(skip)]
    pub next_cursor: Option<String>,
    /// The list's name in the data.
    #[serde(skip)]
    pub list: &'static str,
    /// The number of items on this page.
    #[serde(skip)]
    pub count: usize,
    /// The index of the first item.
    #[serde(skip)]
    pub start: usize,
    /// The limit of the query, if it has one.
    #[serde(skip)]
    pub limit: Option<usize>,
    /// The fingerprint of the query.
    #[serde(skip)]
    pub query: String,
}

impl Page {
    /// Continues after this many items, if the page has more. Without any item there is no cursor: it would
    /// skip the page, or return the same one forever.
    pub fn end_after(&mut self, shown: usize) {
        if shown < self.count {
            self.next_cursor = (shown > 0).then(|| self.cursor_after(shown));
            self.count = shown;
        }
    }

    /// The cursor to what follows this many items of the page.
    fn cursor_after(&self, shown: usize) -> String {
        let next = PageStart { index: self.start + shown, number: self.number + 1, limit: self.limit };
        let positions = [next.number, next.limit.unwrap_or(0), next.index];
        let positions = positions.map(|position| i64::try_from(position).unwrap_or(i64::MAX));
        encode(PAGE, positions, &self.query.as_str().into())
    }

    /// The only page of a list that is never split.
    pub fn whole(count: usize) -> Page {
        let size = count.max(MAX_PAGE_SIZE as usize);
        Page { number: 1, size, total: count, filtered: count, count, ..Page::default() }
    }
}

/// Short, stable fingerprint of a JSON value, for cursors and etags.
pub fn fingerprint(value: &Value) -> String {
    let digest = Sha256::digest(value.to_string().as_bytes());
    digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}

struct PageStart {
    index: usize,
    number: usize,
    limit: Option<usize>,
}

pub fn paginate<T>(items: Vec<T>, paging: &Paging, query: &Value) -> Result<(Vec<T>, Page), AppError> {
    // A query can be as long as the list, so only its fingerprint is repeated.
    let query = fingerprint(query);
    let limit = paging.limit.map(|limit| limit as usize);
    let PageStart { index, number, limit } = match paging.cursor.as_deref() {
        None => PageStart { index: 0, number: 1, limit },
        Some(cursor) => continued_page(cursor, limit, items.len(), &query)?,
    };
    let (total, size) = (items.len(), limit.unwrap_or(MAX_PAGE_SIZE as usize));
    let items: Vec<T> = items.into_iter().skip(index).take(size).collect();
    let count = items.len();
    let mut page =
        Page { number, size, total, filtered: total, count, start: index, limit, query, ..Page::default() };
    page.next_cursor = (index + count < total).then(|| page.cursor_after(count));
    Ok((items, page))
}

/// The page at a cursor. It keeps the limit of the first page.
fn continued_page(
    cursor: &str,
    limit: Option<usize>,
    total: usize,
    query: &str,
) -> Result<PageStart, AppError> {
    let positions = decode(PAGE, "cursor", cursor, &query.into())?;
    let [number, first_limit, index] = positions.map(|position| usize::try_from(position).unwrap_or(0));
    let first_limit = (first_limit > 0).then_some(first_limit);
    if first_limit.is_some() && limit.is_some() && limit != first_limit {
        return Err(cursor_error("cursor", cursor, "was created with another limit")
            .suggest("Repeat the limit of the first call, or start again without a cursor."));
    }
    if index >= total {
        return Err(cursor_error("cursor", cursor, "points past the end"));
    }
    Ok(PageStart { index, number, limit: first_limit.or(limit) })
}

/// First part of the cursors of pages, and of positions in growing lists.
const PAGE: &str = "1";
const POSITIONS: &str = "2";

/// A cursor into growing lists: it contains a position in each of them, not a page number.
pub fn position_cursor<const N: usize>(positions: [i64; N], query: &Value) -> String {
    encode(POSITIONS, positions, query)
}

/// The positions in a cursor created by [`position_cursor`]. `input` is the name of the input that has it.
pub fn cursor_positions<const N: usize>(
    input: &str,
    cursor: &str,
    query: &Value,
) -> Result<[i64; N], AppError> {
    decode(POSITIONS, input, cursor, query)
}

/// The fingerprint covers every number, so that an altered cursor is detected.
fn encode<const N: usize>(kind: &str, numbers: [i64; N], query: &Value) -> String {
    let text = numbers.map(|number| number.to_string()).join(".");
    let plain = format!("{kind}.{text}.{}", fingerprint(&json!([numbers.as_slice(), query])));
    plain.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn decode<const N: usize>(
    kind: &str,
    input: &str,
    cursor: &str,
    query: &Value,
) -> Result<[i64; N], AppError> {
    let invalid = |reason| {
        cursor_error(input, cursor, reason)
            .suggest("Use the cursor of the previous response unchanged, or start again without a cursor.")
    };
    let plain = unhex(cursor).ok_or_else(|| invalid("is not valid"))?;
    let parts: Vec<&str> = plain.split('.').collect();
    let (numbers, given) = match parts.as_slice() {
        [found, numbers @ .., given] if *found == kind => (numbers, given),
        _ => return Err(invalid("is not valid")),
    };
    let numbers: Option<Vec<i64>> = numbers.iter().map(|number| number.parse().ok()).collect();
    match numbers.and_then(|numbers| <[i64; N]>::try_from(numbers).ok()) {
        Some(numbers) if *given == fingerprint(&json!([numbers.as_slice(), query])) => Ok(numbers),
        _ => Err(invalid("belongs to another query")),
    }
}

fn cursor_error(input: &str, cursor: &str, reason: &str) -> AppError {
    let problem = Problem::new(ErrorCode::InvalidCursor, input, reason).value(cursor.into());
    let message = format!("The cursor {reason}.");
    AppError { message, ..problem.into() }
}

fn unhex(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let pairs = bytes.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    String::from_utf8(pairs.collect::<Option<Vec<u8>>>()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn paging(limit: Option<u32>, cursor: Option<&str>) -> Paging {
        Paging { limit, cursor: cursor.map(str::to_owned) }
    }

    #[test]
    fn cursor_of_another_query_is_refused() {
        let (_, page) = paginate((0..10).collect::<Vec<_>>(), &paging(Some(3), None), &json!("a")).unwrap();
        let error =
            paginate((0..10).collect::<Vec<_>>(), &paging(None, page.next_cursor.as_deref()), &json!("b"))
                .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidCursor);
    }

    #[test]
    fn cursor_with_another_limit_is_refused() {
        let (_, page) = paginate((0..10).collect::<Vec<_>>(), &paging(Some(3), None), &json!("a")).unwrap();
        let error =
            paginate((0..10).collect::<Vec<_>>(), &paging(Some(4), page.next_cursor.as_deref()), &json!("a"))
                .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidCursor);
    }

    #[test]
    fn position_cursor_is_valid_only_for_its_query() {
        let query = json!({"labels": {"a": "b"}});
        let cursor = position_cursor([4711, -1], &query);
        assert_eq!(cursor_positions("cursor", &cursor, &query).unwrap(), [4711, -1]);
        assert_eq!(
            cursor_positions::<1>("cursor", &cursor, &query).unwrap_err().code,
            ErrorCode::InvalidCursor
        );
        let other = paginate(vec![1, 2], &paging(Some(1), None), &query).unwrap().1.next_cursor.unwrap();
        for (cursor, question) in [(&cursor, json!({})), (&other, query.clone()), (&"zz".to_owned(), query)] {
            assert_eq!(
                cursor_positions::<2>("cursor", cursor, &question).unwrap_err().code,
                ErrorCode::InvalidCursor
            );
        }
    }

    #[test]
    fn a_shortened_page_continues_after_its_last_item() {
        let all: Vec<usize> = (0..10).collect();
        let (items, page) = paginate(all.clone(), &paging(None, None), &json!("a")).unwrap();
        assert_eq!((items.len(), &page.next_cursor, page.size), (10, &None, 1000));
        let (items, page) = paginate(all, &paging(None, Some(&page.cursor_after(4))), &json!("a")).unwrap();
        assert_eq!((items, page.number, page.total), ((4..10).collect(), 2, 10));
    }

    #[test]
    fn a_page_without_items_is_not_skipped() {
        let (_, mut page) =
            paginate((0..10).collect::<Vec<_>>(), &paging(Some(3), None), &json!("a")).unwrap();
        page.end_after(2);
        assert_eq!(page.next_cursor, Some(page.cursor_after(2)));
        page.end_after(0);
        assert_eq!(page.next_cursor, None);
    }

    proptest! {
        #[test]
        fn following_the_cursors_gives_every_item_once(total in 0usize..60, limit in 1u32..9) {
            let question = json!({"q": 1});
            let (mut collected, mut cursor) = (Vec::new(), None);
            loop {
                let (items, page) =
                    paginate((0..total).collect::<Vec<_>>(), &paging(Some(limit), cursor.as_deref()), &question).unwrap();
                collected.extend(items);
                prop_assert_eq!(page.total, total);
                match page.next_cursor {
                    Some(next) => cursor = Some(next),
                    None => break,
                }
            }
            prop_assert_eq!(collected, (0..total).collect::<Vec<_>>());
        }

        #[test]
        fn no_text_is_taken_for_a_cursor_by_accident(text in ".{0,80}") {
            prop_assert!(paginate(vec![1, 2, 3], &paging(None, Some(&text)), &json!(1)).is_err());
        }
    }
}
