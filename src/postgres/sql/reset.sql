-- Reset: forgets keys, as if they had never been checked. Rows are locked in the order of their keys, as
-- everywhere.
--
-- Parameters: $1 text[] keys. Result, one row per key that was there: key.
WITH doomed AS (
  SELECT key FROM :"schema".limits WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE
)
DELETE FROM :"schema".limits WHERE key = ANY (ARRAY (SELECT key FROM doomed))
RETURNING key;
