-- ?1 reference, ?2 now, ?3 reason, ?4 caller, ?5 content
insert into stock_adjustment (reference, made_at, reason, caller, content) values (?1, ?2, ?3, ?4, ?5) returning id
