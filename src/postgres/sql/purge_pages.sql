-- Purge, one batch: removes closed rows from a range of pages, its own short transaction.
--
-- Locking: takes only rows that nobody holds (SKIP LOCKED), so it waits for no check. FOR UPDATE tests
-- the age again on the row it locked: a row that a check revived meanwhile stays.
--
-- Parameters: $1 tid and $2 tid, the range; $3 bigint, the cut-off; $4 bigint, at most so many rows.
-- Result, one row: the number removed.
WITH closed AS (
  SELECT ctid
  FROM :"schema".limits
  WHERE ctid >= $1::tid AND ctid < $2::tid AND expires_at < $3::bigint
  LIMIT $4::bigint
  FOR UPDATE SKIP LOCKED
), removed AS (
  DELETE FROM :"schema".limits AS l
  USING closed
  WHERE l.ctid = closed.ctid AND l.expires_at < $3::bigint
  RETURNING 1
)
SELECT count(*) FROM removed;
