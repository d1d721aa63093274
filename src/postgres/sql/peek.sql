-- Peek: what rows hold, without locking or writing them. The verdict is worked out from them in C++.
--
-- Parameters: $1 text[] keys; $2 bigint now, microseconds since 1970; below 0: the database's clock.
-- Result, one row per key asked for: key, asked_at, and the row as it is, NULL where there is none.
SELECT
  asked.key,
  CASE
    WHEN $2::bigint < 0 THEN (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
    ELSE $2::bigint
  END AS asked_at,
  l.window_start, l.tokens, l.expires_at, l.unit, l.span, l.previous, l.hits
FROM unnest($1::text[]) AS asked (key)
LEFT JOIN (
  SELECT key, window_start, tokens, expires_at, unit, span, previous, hits
  FROM :"schema".limits
  WHERE key = ANY ($1::text[])
) AS l ON l.key = asked.key;
