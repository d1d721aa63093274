-- Sliding window counter: what was spent in this window, and of the window before the share that a window
-- ending now still covers, rounded up. Windows are aligned to the epoch.
--
-- Parameters, one array element per key, each key once, none of them NULL:
--   $1 text[]    keys
--   $2 bigint[]  rate       0
--   $3 bigint[]  unit       1
--   $4 bigint[]  span       the rule's window, microseconds
--   $5 bigint[]  capacity   the limit
--   $6 bigint[]  cost       of one request
--   $7 bigint[]  count      requests of that cost
--   $8 bigint               now, microseconds since 1970; below 0: the database's clock
-- Result, locking and clock: as in token_bucket.sql, with the row's span in place of
-- its unit, and previous.
--
-- tokens is what was spent in the window of the mark, previous what was spent in the one before. After a
-- change of the window both count in full while the mark lies in the new rule's current window.

\set wrong_clock '(l.window_start > excluded.window_start + greatest(excluded.span, 10000000))'
\set later 'greatest(l.window_start, excluded.window_start)'
\set mark '(CASE WHEN :wrong_clock THEN excluded.window_start ELSE :later END)'
\set windows_passed '(excluded.window_start / excluded.span - l.window_start / excluded.span)'
\set same '(l.span = excluded.span)'
\set latest '(CASE WHEN :same THEN l.tokens ELSE least(l.tokens + l.previous, 4611686018427387904) END)'
\set current '(CASE WHEN excluded.window_start >= l.expires_at OR :windows_passed > 0 THEN 0 ELSE :latest END)'
\set before '(CASE WHEN excluded.window_start >= l.expires_at OR :windows_passed > 1 THEN 0 WHEN :windows_passed = 1 THEN :latest WHEN :same THEN l.previous ELSE 0 END)'
\set bounded 'least(:before, 4611686018427387904 / excluded.span)'
\set covered '((:bounded * (excluded.span - :mark % excluded.span) + excluded.span - 1) / excluded.span)'
\set level '(:current + :covered)'
\set granted 'least(excluded.granted, greatest(0, excluded.capacity - :level) / excluded.cost * excluded.cost)'

\set wanted 'least(count, capacity / cost) * cost'
\set now 'CASE WHEN $8::bigint < 0 THEN (extract(epoch FROM statement_timestamp()) * 1000000)::bigint ELSE $8::bigint END'

-- The statement has three forms. With :all_or_nothing set it decides what is asked as one: nothing is
-- charged unless all of it fits. When the locked rows grant only a part of it, it raises (22012, a
-- division by zero) and so takes everything back; asked again it sees those rows and refuses.
\if :{?all_or_nothing}
\set fits '(l.key IS NULL OR :level <= excluded.capacity - excluded.cost) IS TRUE'
\set charge_if 'fits AND (SELECT bool_and(fits) FROM judged)'
\set refuse_if '(SELECT NOT bool_and(fits) FROM judged)'
\set verdict 'charged.granted / (SELECT CASE WHEN bool_and(granted = cost) THEN 1 ELSE 0 END FROM charged)'
\else
\set fits '(l.key IS NULL OR :wrong_clock OR :level <= excluded.capacity - excluded.cost) IS TRUE'
\set charge_if 'fits'
\set refuse_if 'NOT fits'
\set verdict 'charged.granted'
\endif

-- With :one_key set it decides one key where that is simple, as in token_bucket.sql.
\if :{?one_key}
\set same_rule '(l.rate, l.unit, l.span, l.capacity) = (excluded.rate, excluded.unit, excluded.span, excluded.capacity)'
\set mark ':later'
\set same true

UPDATE :"schema".limits AS l SET
  window_start = :mark,
  tokens = :current + excluded.granted,
  expires_at = (:mark / excluded.span + 2) * excluded.span,
  granted = excluded.granted,
  cost = excluded.cost,
  previous = :before
FROM (
  SELECT
    $2::bigint AS rate, $3::bigint AS unit, $4::bigint AS span, $5::bigint AS capacity, $6::bigint AS cost,
    once.granted, once.window_start
  -- OFFSET 0: worked out once, instead of wherever it is used.
  FROM (
    SELECT :wanted AS granted, :now AS window_start
    FROM (SELECT $5::bigint AS capacity, $6::bigint AS cost, $7::bigint AS count) AS a
    OFFSET 0
  ) AS once
) AS excluded
WHERE l.key = $1::text
  AND :same_rule AND NOT :wrong_clock AND :level <= excluded.capacity - excluded.granted
RETURNING
  l.key, l.granted, excluded.window_start AS asked_at, l.window_start, l.tokens, l.expires_at, l.span, l.previous;
\else

WITH asked AS (
  SELECT
    key, rate, unit, span, capacity, cost,
    :wanted AS granted,
    (SELECT :now) AS window_start
  FROM unnest(
    $1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]
  ) AS a (key, rate, unit, span, capacity, cost, count)
  -- Worked out here, once, instead of wherever it is used. The clock is read once for all keys.
  OFFSET 0
),
seen AS (
  SELECT key, window_start, tokens, expires_at, span, previous
  FROM :"schema".limits
  WHERE key = ANY ($1::text[])
),
judged AS (
  SELECT
    excluded.*,
    l.window_start AS seen_window_start,
    l.tokens AS seen_tokens,
    l.expires_at AS seen_expires_at,
    l.span AS seen_span,
    l.previous AS seen_previous,
    :fits AS fits
  FROM asked AS excluded
  LEFT JOIN seen AS l ON l.key = excluded.key
),
charged AS (
  INSERT INTO :"schema".limits AS l
    (key, window_start, tokens, expires_at, granted, cost, capacity, rate, unit, span, previous)
  SELECT
    key, window_start, granted, (window_start / span + 2) * span,
    granted, cost, capacity, rate, unit, span, 0
  FROM judged
  WHERE :charge_if
  ORDER BY key COLLATE "C"
  ON CONFLICT (key) DO UPDATE SET
    window_start = :mark,
    tokens = :current + :granted,
    expires_at = (:mark / excluded.span + 2) * excluded.span,
    granted = :granted,
    cost = excluded.cost,
    capacity = excluded.capacity,
    rate = excluded.rate,
    unit = excluded.unit,
    span = excluded.span,
    previous = :before
  RETURNING key, granted, cost, window_start, tokens, expires_at, span, previous
)
SELECT
  key, :verdict AS granted, (SELECT window_start FROM judged LIMIT 1) AS asked_at,
  window_start, tokens, expires_at, span, previous
FROM charged
UNION ALL
SELECT key, 0, window_start, seen_window_start, seen_tokens, seen_expires_at, seen_span, seen_previous
FROM judged
WHERE :refuse_if;
\endif
