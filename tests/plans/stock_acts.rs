//! Acts about stock and reservations, each met with something to do.

use super::acts::Act;

/// A stock with units in its pool, beside it and to be folded, one reservation that is held and one past its time.
const STOCK: &str = "
    insert into leasehold.queue (id, name) values (900, 'q') on conflict do nothing;
    delete from leasehold.stock; delete from leasehold.stock_unit; delete from leasehold.stock_delta;
    delete from leasehold.stock_ledger; delete from leasehold.stock_adjustment; delete from leasehold.reservation;
    delete from leasehold.reservation_line; delete from leasehold.reservation_job;
    insert into leasehold.stock (item, location, on_hand, held, unpooled, next_unit) values ('cup', 'here', 30, 3, 15, 11);
    insert into leasehold.stock_unit (item, location, unit) select 'cup', 'here', n from generate_series(1, 10) n;
    insert into leasehold.stock_delta (item, location, on_hand, held, free) values ('cup', 'here', 0, -2, 2);
    insert into leasehold.stock_adjustment (id, reference, reason, caller, content) values (900, 'known', '', 'plans', 'x');
    insert into leasehold.stock_ledger (item, location, kind, on_hand, held, adjustment_id)
        values ('cup', 'here', 1, 30, 0, 900);
    insert into leasehold.reservation (id, reference, content, caller, created_at, expires_at) values
        (901, 'held', 'x', 'plans', now(), now() + interval '1 hour'), (902, 'late', 'x', 'plans', now(), now());
    insert into leasehold.reservation (id, reference, content, caller, created_at, expires_at, ended_at, state) values
        (903, 'over', 'x', 'plans', now(), now(), now(), 2);
    insert into leasehold.reservation_line (reservation_id, line, item, location, quantity, expires_at, live)
        select r.id, 1, 'cup', 'here', 1, r.expires_at, r.state = 1 from leasehold.reservation r;
    insert into leasehold.reservation_job (
        reservation_id, place, queue_id, payload, content_type, priority, delay, max_attempts, ordering_key
    ) values (902, 1, 900, '', '', 4, 0, 5, 'k'), (902, 2, 900, '', '', 4, 0, 5, null);";

pub(crate) const ACTS: &[Act] = &[
    Act {
        name: "reserve the fast way",
        before: STOCK,
        text: "select from leasehold.reserve(
            false, 'fast', 'x', 1000000, 'plans', 10, array['cup'], array['here'], array[2],
            array[900], array[''::bytea], array[''], array[null::text], array[4::smallint], array[null::bigint],
            array[null::timestamptz], array[5], array['k'], array['i'], array['x'::bytea], array[1000000::bigint],
            array[null::text], array[null::text],
            array[900], array[''::bytea], array[''], array[null::text], array[4::smallint], array[null::bigint], array[5],
            array[null::text], array[null::text], array[null::text]
        )",
    },
    Act {
        name: "reserve the slow way",
        before: STOCK,
        text: "select from leasehold.reserve(
            true, 'slow', 'x', 1000000, 'plans', 10, array['cup'], array['here'], array[28],
            array[]::int[], array[]::bytea[], array[]::text[], array[]::text[], array[]::smallint[], array[]::bigint[],
            array[]::timestamptz[], array[]::int[], array[]::text[], array[]::text[], array[]::bytea[], array[]::bigint[],
            array[]::text[], array[]::text[], array[]::int[], array[]::bytea[], array[]::text[], array[]::text[],
            array[]::smallint[], array[]::bigint[], array[]::int[], array[]::text[], array[]::text[], array[]::text[]
        )",
    },
    Act {
        name: "reserve more than there is",
        before: STOCK,
        text: "select from leasehold.reserve(
            true, 'more', 'x', 1000000, 'plans', 10, array['cup', 'pot'], array['here', 'here'], array[28, 1],
            array[]::int[], array[]::bytea[], array[]::text[], array[]::text[], array[]::smallint[], array[]::bigint[],
            array[]::timestamptz[], array[]::int[], array[]::text[], array[]::text[], array[]::bytea[], array[]::bigint[],
            array[]::text[], array[]::text[], array[]::int[], array[]::bytea[], array[]::text[], array[]::text[],
            array[]::smallint[], array[]::bigint[], array[]::int[], array[]::text[], array[]::text[], array[]::text[]
        )",
    },
    Act {
        name: "reserve more than there is, the fast way",
        before: STOCK,
        text: "select from leasehold.reserve(
            false, 'more', 'x', 1000000, 'plans', 10, array['cup', 'pot'], array['here', 'here'], array[28, 1],
            array[]::int[], array[]::bytea[], array[]::text[], array[]::text[], array[]::smallint[], array[]::bigint[],
            array[]::timestamptz[], array[]::int[], array[]::text[], array[]::text[], array[]::bytea[], array[]::bigint[],
            array[]::text[], array[]::text[], array[]::int[], array[]::bytea[], array[]::text[], array[]::text[],
            array[]::smallint[], array[]::bigint[], array[]::int[], array[]::text[], array[]::text[], array[]::text[]
        )",
    },
    Act {
        name: "commit",
        before: STOCK,
        text: "select from leasehold.end_reservation(
            901, 2::smallint, 'plans',
            array[900], array[''::bytea], array[''], array[null::text], array[4::smallint], array[null::bigint],
            array[null::timestamptz], array[5], array[null::text], array[null::text], array[null::bytea],
            array[null::bigint], array[null::text], array[null::text]
        )",
    },
    Act {
        name: "release what is over",
        before: STOCK,
        text: "select from leasehold.end_reservation(
            903, 3::smallint, 'plans', array[]::int[], array[]::bytea[], array[]::text[], array[]::text[],
            array[]::smallint[], array[]::bigint[], array[]::timestamptz[], array[]::int[], array[]::text[],
            array[]::text[], array[]::bytea[], array[]::bigint[], array[]::text[], array[]::text[]
        )",
    },
    Act {
        name: "extend a reservation",
        before: STOCK,
        text: "select from leasehold.extend_reservation(901, 7200000000)",
    },
    Act { name: "find by reference", before: STOCK, text: "select from leasehold.find_reservation(null, 'held')" },
    Act { name: "sweep", before: STOCK, text: "select from leasehold.sweep_reservations('epoch', 10)" },
    Act { name: "prune reservations", before: STOCK, text: "select from leasehold.prune_reservations('epoch', 0, 10)" },
    Act {
        name: "adjust",
        before: STOCK,
        text: "select from leasehold.adjust_stock(
            'counted', 'x', '', 'plans', 10, array['cup', 'new'], array['here', 'here'], array[-28, 5], 1000
        )",
    },
    Act {
        name: "refill",
        before: STOCK,
        text: "delete from leasehold.stock_unit where item = 'cup' and location = 'here' and unit < 8;
            select from leasehold.refill_stock(array['cup'], array['here'], 10)",
    },
    Act { name: "find what is not folded", before: STOCK, text: "select from leasehold.unfolded_stock('', '', 10)" },
    Act { name: "verify", before: STOCK, text: "select from leasehold.verify_stock(null, '', '', 10)" },
];
