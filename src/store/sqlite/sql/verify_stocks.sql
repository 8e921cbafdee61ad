-- ?1 item, ?2 location, ?3 this item alone or null, ?4 limit
-- All figures of the keys behind the one given, those included of which there are only entries.
select keyed.item, keyed.location, coalesce(stock.on_hand, 0) as on_hand, coalesce(stock.held, 0) as held,
    (
        select coalesce(sum(entry.on_hand), 0) from stock_ledger entry
        where entry.item = keyed.item and entry.location = keyed.location
    ) as entered_on_hand,
    (
        select coalesce(sum(entry.held), 0) from stock_ledger entry
        where entry.item = keyed.item and entry.location = keyed.location
    ) as entered_held,
    (
        select coalesce(sum(line.quantity), 0) from reservation_line line indexed by reservation_line_live
        where line.item = keyed.item and line.location = keyed.location and line.live = 1
    ) as lines_held
from (
    select item, location from stock
    where (item, location) > (?1, ?2) and (?3 is null or item = ?3)
    union
    select item, location from stock_ledger
    where (item, location) > (?1, ?2) and (?3 is null or item = ?3)
    order by item, location
    limit ?4
) keyed
left join stock on stock.item = keyed.item and stock.location = keyed.location
order by keyed.item, keyed.location
