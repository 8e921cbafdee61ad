-- What a replica says of itself. See leasehold.attend.
select a.unknown_before, a.to_cancel
from leasehold.attend(
    $1::bigint, $2::bigint, $3::bigint, $4::text, $5::text, $6::bigint, $7::boolean, $8::bigint, $9::bigint[], $10::bigint[],
    $11::text[], $12::text[], $13::text[], $14::text[], $15::int[], $16::int[], $17::bigint[], $18::bigint[], $19::text[],
    $20::text[], $21::bigint[], $22::bigint[], $23::int[], $24::int[], $25::float8[], $26::float8[], $27::float8[],
    $28::float8[], $29::float8[], $30::float8[]
) a
