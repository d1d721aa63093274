-- Purge, first question: is there a table, may this session purge it, how long is it, and what is closed?
-- The cut-off is read from the server's clock once, here. A session that is bound by row-level security and
-- has no policy sees no row at all, which must not be taken for a clean table.
--
-- Variables: table, the qualified name; purger, the role; grace, microseconds.
-- Result, one row: is_there, is_purger, is_bound (by row-level security), has_policies, pages, cut_off,
-- has_ranges (the server can read a range of pages), may_be_distributed (Citus is there), role.
SELECT
  limits.oid IS NOT NULL AS is_there,
  EXISTS (
    SELECT FROM pg_catalog.pg_roles
    WHERE rolname = :'purger' AND pg_catalog.pg_has_role(oid, 'USAGE')
  ) AS is_purger,
  coalesce(pg_catalog.row_security_active(limits.oid), false) AS is_bound,
  (
    SELECT count(DISTINCT needed) = 3
    FROM pg_catalog.pg_policy AS p
    JOIN unnest(ARRAY['r', 'w', 'd']) AS needed ON p.polcmd IN (needed::"char", '*')
    WHERE p.polrelid = limits.oid
      AND EXISTS (
        SELECT FROM unnest(p.polroles) AS r (oid)
        WHERE r.oid = 0 OR pg_catalog.pg_has_role(r.oid, 'USAGE')
      )
  ) AS has_policies,
  coalesce(pg_catalog.pg_relation_size(limits.oid), 0)
    / pg_catalog.current_setting('block_size')::bigint AS pages,
  (extract(epoch FROM statement_timestamp()) * 1000000)::bigint - :grace AS cut_off,
  pg_catalog.current_setting('server_version_num')::integer >= 140000 AS has_ranges,
  pg_catalog.to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL AS may_be_distributed,
  current_user AS role
FROM (SELECT pg_catalog.to_regclass(:'table')::oid AS oid) AS limits;
