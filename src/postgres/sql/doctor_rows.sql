-- Doctor: a sample of the rows. How many have been closed for long, and which rules are written with more
-- than one window. Locks nothing; reads the share of the table's pages that it is told.
--
-- Variables: schema; share, percent; age, microseconds.
-- Result, one row: sampled, closed, and rules, NULL if none is written under two windows.
WITH sample AS MATERIALIZED (
  SELECT
    split_part(key, '/', 1) AS rule, split_part(key, '/', 2) AS algorithm, span, expires_at,
    (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS now
  FROM :"schema".limits TABLESAMPLE SYSTEM (:share)
)
SELECT
  count(*) AS sampled,
  count(*) FILTER (WHERE expires_at < now - :age) AS closed,
  (
    SELECT string_agg(format('%s (%s)', rule, windows), ', ' ORDER BY rule)
    FROM (
      SELECT rule, string_agg(DISTINCT span * interval '1 microsecond' || '', ' and ') AS windows
      FROM sample
      WHERE expires_at > now
      GROUP BY rule, algorithm
      HAVING count(DISTINCT span) > 1
    ) AS mixed
  ) AS rules
FROM sample;
