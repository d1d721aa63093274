-- Purge, one batch: removes closed rows from a range of pages, its own short transaction.
--
-- Locking: takes only rows that nobody holds (SKIP LOCKED), so it waits for no check. FOR UPDATE tests
-- the age again on the row it locked: a row that a check revived meanwhile stays.
--
-- Variables: schema; first and past, two tids, the range; cut_off, microseconds; batch, at most so many rows.
-- Result, one row: removed; found (batch, if there may be more in the range); the last tid looked at.
WITH closed AS (
  SELECT ctid
  FROM :"schema".limits
  WHERE ctid >= :'first'::tid AND ctid < :'past'::tid AND expires_at < :cut_off
  LIMIT :batch
  FOR UPDATE SKIP LOCKED
), removed AS (
  DELETE FROM :"schema".limits AS l
  WHERE l.ctid = ANY (ARRAY (SELECT ctid FROM closed)) AND l.expires_at < :cut_off
  RETURNING 1
)
SELECT
  (SELECT count(*) FROM removed) AS removed,
  count(*) AS found,
  max(ctid) AS last
FROM closed;
