-- Top: the fullest, the most spent or the latest limits, as they are at this moment. Locks nothing; reads
-- the whole table, or the rows of one rule by the primary key.
--
-- Variables: schema; from and past, the range of keys; by, fullness, spent or recent; rows, at most so many.
-- Result: key, spent and capacity in whole tokens (begun ones count), fullness 0 to 1, empty_in and
-- last_charge in microseconds.
--
-- What was given back since the latest charge is worked out as the algorithms do it: see src/sql/.

\set drained '(least(greatest(0, now - window_start), 9223372036854775807 / greatest(rate, 1)) * rate)'
\set left '((span - now % span)::numeric / span)'

WITH live AS (
  SELECT l.*, split_part(l.key, '/', 2) AS algorithm, c.now
  FROM :"schema".limits AS l
  CROSS JOIN (
    SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS now
  ) AS c
  WHERE l.key >= :'from' AND l.key < :'past' AND l.expires_at > c.now
),
judged AS (
  SELECT
    live.*,
    CASE algorithm
      WHEN 'tb' THEN greatest(0, tokens - :drained)::numeric
      WHEN 'sw' THEN
        CASE
          WHEN window_start / span >= now / span THEN tokens + coalesce(previous, 0) * :left
          WHEN window_start / span = now / span - 1 THEN tokens * :left
          ELSE 0
        END
      WHEN 'sl' THEN
        unit * (SELECT count(*) FROM unnest(hits) AS hit WHERE hit > now - span)::numeric
      ELSE tokens::numeric
    END AS level
  FROM live
)
SELECT
  key,
  ceil(level / unit)::bigint AS spent,
  capacity / unit AS capacity,
  round(least(1, level / capacity), 4) AS fullness,
  CASE WHEN level = 0 THEN 0 ELSE expires_at - now END AS empty_in,
  window_start AS last_charge
FROM judged
ORDER BY
  CASE :'by'
    WHEN 'spent' THEN level / unit
    WHEN 'recent' THEN window_start::numeric
    ELSE level / capacity
  END DESC,
  level / unit DESC, window_start DESC, key
LIMIT :rows;
