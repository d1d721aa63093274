-- Replace: puts a new state in the place of one that was read before, if it is still the same. A refund
-- is a peek, the arithmetic in C++, and this; where another session was faster it is tried again. So no
-- lock is held across a round trip, and the arithmetic of a refund need not be written twice.
--
-- Parameters, $1 the key, then what was read: $2 window_start, $3 tokens, $4 expires_at, $5 unit,
-- $6 span, $7 previous, $8 hits; then what it becomes: $9 to $15 in the same order.
-- Result: key, if it was replaced.
UPDATE :"schema".limits
SET
  window_start = $9::bigint,
  tokens = $10::bigint,
  expires_at = $11::bigint,
  unit = $12::bigint,
  span = $13::bigint,
  previous = CASE WHEN previous IS NULL THEN NULL ELSE $14::bigint END,
  hits = CASE WHEN hits IS NULL THEN NULL ELSE $15::bigint[] END
WHERE key = $1::text
  AND window_start = $2::bigint
  AND tokens = $3::bigint
  AND expires_at = $4::bigint
  AND unit = $5::bigint
  AND span = $6::bigint
  AND coalesce(previous, 0) = $7::bigint
  AND coalesce(hits, '{}') = $8::bigint[]
RETURNING key;
