-- Purge by keys, where pages cannot be read in ranges (PostgreSQL 13) or there are none to see (Citus):
-- the next closed rows in the order of their keys. Locks nothing.
--
-- Variables: schema; after, a quoted key; cut_off, microseconds; batch, at most so many rows.
-- Result, one row: found, and the last key, NULL if there is none.
SELECT count(*) AS found, max(key) AS last
FROM (
  SELECT key
  FROM :"schema".limits
  WHERE key > :after AND expires_at < :cut_off
  ORDER BY key
  LIMIT :batch
) AS closed;
