-- ? [[made_at, reservation, kind], …], all of them locked by this transaction, ? item, ? location
delete d
from json_table(?, '$[*]' columns (
    made_at bigint path '$[0]', reservation_id bigint path '$[1]', kind int path '$[2]'
)) v
straight_join leasehold_stock_delta d force index (primary)
    on d.item = ? and d.location = ? and d.made_at = v.made_at and d.reservation_id = v.reservation_id and d.kind = v.kind
