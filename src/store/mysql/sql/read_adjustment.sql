-- ? reference
select a.content from leasehold_stock_adjustment a force index (primary) where a.reference = ?
