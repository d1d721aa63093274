-- Sliding log: the instant of each hit is kept for one window; the hits in (now - window, now] count.
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
-- its unit, and hits.
--
-- hits is sorted, since time never moves back: each hit is stamped with the mark, and what is old is told
-- by the mark too. A row from a wrong clock keeps as many hits, stamped now.

\set wrong_clock '(l.window_start > excluded.window_start + greatest(excluded.span, 10000000))'
\set mark '(CASE WHEN :wrong_clock THEN excluded.window_start ELSE greatest(l.window_start, excluded.window_start) END)'
\set old '(CASE WHEN excluded.window_start >= l.expires_at THEN cardinality(l.hits) ELSE width_bucket(:mark - excluded.span, l.hits) END)'
\set kept '(CASE WHEN :wrong_clock AND excluded.window_start < l.expires_at THEN array_fill(excluded.window_start::bigint, ARRAY[cardinality(l.hits)]) ELSE l.hits[:old + 1:] END)'
\set level 'cardinality(:kept)'
\set granted 'least(excluded.granted, greatest(0, excluded.capacity - :level) / excluded.cost * excluded.cost)'

\set wanted 'least(count, capacity / cost) * cost'
\set now 'CASE WHEN $8::bigint < 0 THEN (extract(epoch FROM statement_timestamp()) * 1000000)::bigint ELSE $8::bigint END'

-- The statement has two forms. With :all_or_nothing set it decides what is asked as one: nothing is
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
  SELECT key, window_start, tokens, expires_at, span, hits
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
    l.hits AS seen_hits,
    :fits AS fits
  FROM asked AS excluded
  LEFT JOIN seen AS l ON l.key = excluded.key
),
charged AS (
  INSERT INTO :"schema".limits AS l
    (key, window_start, tokens, expires_at, granted, cost, capacity, rate, unit, span, hits)
  SELECT
    key, window_start, granted, window_start + span,
    granted, cost, capacity, rate, unit, span, array_fill(window_start, ARRAY[granted::int])
  FROM judged
  WHERE :charge_if
  ORDER BY key COLLATE "C"
  ON CONFLICT (key) DO UPDATE SET
    window_start = :mark,
    tokens = :level + :granted,
    expires_at = :mark + excluded.span,
    granted = :granted,
    cost = excluded.cost,
    capacity = excluded.capacity,
    rate = excluded.rate,
    unit = excluded.unit,
    span = excluded.span,
    hits = :kept || array_fill((:mark)::bigint, ARRAY[(:granted)::int])
  RETURNING key, granted, cost, window_start, tokens, expires_at, span, hits
)
SELECT
  key, :verdict AS granted, (SELECT window_start FROM judged LIMIT 1) AS asked_at,
  window_start, tokens, expires_at, span, hits
FROM charged
UNION ALL
SELECT key, 0, window_start, seen_window_start, seen_tokens, seen_expires_at, seen_span, seen_hits
FROM judged
WHERE :refuse_if;
