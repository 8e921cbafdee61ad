-- ? item, ? location, ? item, ? location, ? item, ? location
-- Whether anything is free that this transaction did not take, all at one instant.
select
    exists (
        select 1 from leasehold_stock_delta d force index (primary) where d.item = ? and d.location = ? and d.free > 0
    ) as deltas,
    exists (select 1 from leasehold_stock_unit u force index (primary) where u.item = ? and u.location = ?) as units,
    exists (
        select 1 from leasehold_reservation_line l force index (reservation_line_live)
        where l.item = ? and l.location = ? and l.live_until > 0
            and l.live_until <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    ) as overdue
