-- Who holds what a migrator or a purge waits for: the migrators' turn, or a lock on a table of the
-- schema. Looks at the server's list of locks; locks nothing itself.
--
-- Result, one row per session: text such as process 123 (role app, application psql, idle in transaction).
-- What the session does is shown only to those who may see it.
SELECT DISTINCT
  format('process %s (role %s, application %s%s)', l.pid, coalesce(a.usename, 'unknown'),
         coalesce(nullif(a.application_name, ''), 'unnamed'), ', ' || a.state) AS holder
FROM pg_catalog.pg_locks AS l
LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
LEFT JOIN pg_catalog.pg_class AS c ON l.locktype = 'relation' AND c.oid = l.relation
LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN pg_catalog.hashtextextended('limitrow migrations of ' || :'schema', 0) AS turn
WHERE l.granted
  AND l.pid <> pg_catalog.pg_backend_pid()
  AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
  AND (
    n.nspname = :'schema'
    OR l.locktype = 'advisory' AND l.objsubid = 1
      AND l.classid::bigint = (turn >> 32) & 4294967295
      AND l.objid::bigint = turn & 4294967295
  )
ORDER BY holder
LIMIT 5;
