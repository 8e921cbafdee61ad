//! Stocks and jobs as they are named on a command line.

use crate::v1::{NewJob, ReservationLine, StockAdjustment, StockKey};

/// `ITEM@LOCATION=UNITS`: the last `@` and the last `=` divide it.
pub(super) fn adjustment(text: &str) -> Result<StockAdjustment, String> {
    let (key, units) = split(text, "UNITS")?;
    let delta =
        units.parse().map_err(|_| format!("UNITS must be a whole number, such as 40 or -3, and is '{units}'"))?;
    Ok(StockAdjustment { key: Some(key), delta })
}

/// `ITEM@LOCATION=QUANTITY`.
pub(super) fn line(text: &str) -> Result<ReservationLine, String> {
    let (key, quantity) = split(text, "QUANTITY")?;
    let quantity = quantity.parse().map_err(|_| format!("QUANTITY must be a whole number, and is '{quantity}'"))?;
    Ok(ReservationLine { key: Some(key), quantity })
}

/// `QUEUE=PAYLOAD`.
pub(super) fn job(text: &str) -> Result<NewJob, String> {
    match text.split_once('=') {
        Some((queue, payload)) if !queue.is_empty() => {
            Ok(NewJob { queue: queue.to_owned(), payload: payload.to_owned().into(), ..NewJob::default() })
        }
        _ => Err(format!("must be QUEUE=PAYLOAD, and is '{text}'")),
    }
}

/// Item, location and units of a line of a file, between tabs.
pub(super) fn row(text: &str) -> Result<StockAdjustment, String> {
    let cells: Vec<&str> = text.split('\t').collect();
    let [item, location, units] = cells[..] else {
        return Err(format!(
            "must be an item, a location and units with tabs between them, and has {} parts",
            cells.len()
        ));
    };
    let delta = units.trim().parse().map_err(|_| format!("its units must be a whole number, and are '{units}'"))?;
    Ok(StockAdjustment { key: Some(StockKey { item: item.to_owned(), location: location.to_owned() }), delta })
}

fn split<'a>(text: &'a str, number: &str) -> Result<(StockKey, &'a str), String> {
    let wrong = || format!("must be ITEM@LOCATION={number}, and is '{text}'");
    let (key, units) = text.rsplit_once('=').ok_or_else(wrong)?;
    let (item, location) = key.rsplit_once('@').ok_or_else(wrong)?;
    Ok((StockKey { item: item.to_owned(), location: location.to_owned() }, units))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(item: &str, location: &str) -> StockKey {
        StockKey { item: item.into(), location: location.into() }
    }

    #[test]
    fn the_last_signs_divide_a_stock_from_its_number() {
        assert_eq!(adjustment("a@b=c@berlin=-3"), Ok(StockAdjustment { key: Some(key("a@b=c", "berlin")), delta: -3 }));
        assert_eq!(
            line("espresso@berlin=2"),
            Ok(ReservationLine { key: Some(key("espresso", "berlin")), quantity: 2 })
        );
        for bad in
            ["espresso=2", "espresso@berlin", "espresso@berlin=", "espresso@berlin=-2", "e@b=1.5", "e@b=4294967296"]
        {
            assert!(line(bad).is_err(), "{bad}");
        }
        assert!(adjustment("e@b=9223372036854775808").is_err());
    }

    #[test]
    fn a_row_takes_every_name_there_may_be() {
        assert_eq!(row("a @=1\tb\t12"), Ok(StockAdjustment { key: Some(key("a @=1", "b")), delta: 12 }));
        for bad in ["", "a\tb", "a\tb\t1\t2", "a\tb\tx", "a,b,1"] {
            assert!(row(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_job_is_divided_at_the_first_sign() {
        assert_eq!(job("mail=a=b").map(|job| (job.queue, job.payload)), Ok(("mail".into(), "a=b".into())));
        assert!(job("mail").is_err() && job("=x").is_err());
    }
}
