-- Token bucket: what was spent is given back continuously, `rate` units each microsecond.
--
-- Parameters, one array element per key, each key once, none of them NULL:
--   $1 text[]    keys
--   $2 bigint[]  rate       units given back per microsecond
--   $3 bigint[]  unit       units per token
--   $4 bigint[]  span       the rule's window, microseconds
--   $5 bigint[]  capacity   the most that can be spent at once, units
--   $6 bigint[]  cost       of one request, units
--   $7 bigint[]  count      requests of that cost
--   $8 bigint               now, microseconds since 1970; below 0: the database's clock
-- Result, one row per key: key, granted (units, a multiple of cost), asked_at (now), and the row as it
-- is: window_start, tokens, expires_at, unit; NULL where there is none.
--
-- Locking: the snapshot may only refuse; a key that does not fit there is neither locked nor written.
-- Everything else is decided on the locked row, in SET. Rows are locked in the order of their keys.
-- Clock: the statement's start. After a wait for a lock it is old, so time never moves back: the mark
-- is the later of the row's and now. Only a mark further ahead than a window (or 10 s, the longest a
-- statement may last) is a wrong clock: then the row is written anew, with the mark at now and what was
-- spent kept, even where the check is refused.
--
-- Each formula stands once, here, as a psql variable. l is the row, excluded is what is asked.

\set wrong_clock '(l.window_start > excluded.window_start + greatest(excluded.span, 10000000))'
\set later 'greatest(l.window_start, excluded.window_start)'
\set mark '(CASE WHEN :wrong_clock THEN excluded.window_start ELSE :later END)'
\set converted 'least(div(l.tokens::numeric * excluded.unit + l.unit - 1, l.unit), 4611686018427387904)::bigint'
\set spent '(CASE WHEN l.unit = excluded.unit THEN l.tokens ELSE :converted END)'
\set elapsed 'greatest(0, excluded.window_start - l.window_start)'
\set drained '(least(:elapsed, 9223372036854775807 / excluded.rate) * excluded.rate)'
\set level '(CASE WHEN excluded.window_start >= l.expires_at THEN 0 ELSE greatest(0, :spent - :drained) END)'
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

-- With :one_key set it has one key to decide, and each parameter is an element instead of an array. It does
-- so only where nothing but the amounts changes: the row is there, has the same rule and a mark from no
-- wrong clock, and all that is asked fits. Otherwise it answers no row and has done nothing; the full form
-- decides. It costs a third as much.
\if :{?one_key}
\set same_rule '(l.rate, l.unit, l.span, l.capacity) = (excluded.rate, excluded.unit, excluded.span, excluded.capacity)'
\set mark ':later'
\set spent 'l.tokens'

UPDATE :"schema".limits AS l SET
  window_start = :mark,
  tokens = :level + excluded.granted,
  expires_at = :mark + (:level + excluded.granted + excluded.rate - 1) / excluded.rate,
  granted = excluded.granted,
  cost = excluded.cost
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
  l.key, l.granted, excluded.window_start AS asked_at, l.window_start, l.tokens, l.expires_at, l.unit;
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
  SELECT key, window_start, tokens, expires_at, unit
  FROM :"schema".limits
  WHERE key = ANY ($1::text[])
),
judged AS (
  SELECT
    excluded.*,
    l.window_start AS seen_window_start,
    l.tokens AS seen_tokens,
    l.expires_at AS seen_expires_at,
    l.unit AS seen_unit,
    :fits AS fits
  FROM asked AS excluded
  LEFT JOIN seen AS l ON l.key = excluded.key
),
charged AS (
  INSERT INTO :"schema".limits AS l
    (key, window_start, tokens, expires_at, granted, cost, capacity, rate, unit, span)
  SELECT
    key, window_start, granted, window_start + (granted + rate - 1) / rate,
    granted, cost, capacity, rate, unit, span
  FROM judged
  WHERE :charge_if
  ORDER BY key COLLATE "C"
  ON CONFLICT (key) DO UPDATE SET
    window_start = :mark,
    tokens = :level + :granted,
    expires_at = :mark + (:level + :granted + excluded.rate - 1) / excluded.rate,
    granted = :granted,
    cost = excluded.cost,
    capacity = excluded.capacity,
    rate = excluded.rate,
    unit = excluded.unit,
    span = excluded.span
  RETURNING key, granted, cost, window_start, tokens, expires_at, unit
)
SELECT
  key, :verdict AS granted, (SELECT window_start FROM judged LIMIT 1) AS asked_at,
  window_start, tokens, expires_at, unit
FROM charged
UNION ALL
SELECT key, 0, window_start, seen_window_start, seen_tokens, seen_expires_at, seen_unit
FROM judged
WHERE :refuse_if;
\endif
