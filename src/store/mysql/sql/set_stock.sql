-- ? on_hand, ? held, ? unpooled, ? next_unit, ? unit_floor, ? delta_floor, ? item, ? location
update leasehold_stock s force index (primary)
set s.on_hand = ?, s.held = ?, s.unpooled = ?, s.next_unit = ?, s.unit_floor = ?, s.delta_floor = ?
where s.item = ? and s.location = ?
