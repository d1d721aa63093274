-- Purge, first question: may this session purge, how long is the table, and what is closed?
-- The cut-off is read from the server's clock once, here.
--
-- Parameter: $1 bigint, the grace in microseconds.
-- Result, one row: is_purger, is_bound (by row-level security), pages, cut_off.
SELECT
  EXISTS (
    SELECT FROM pg_catalog.pg_roles
    WHERE rolname = :'purger' AND pg_catalog.pg_has_role(oid, 'USAGE')
  ) AS is_purger,
  pg_catalog.row_security_active(:'table') AS is_bound,
  pg_catalog.pg_relation_size(:'table'::regclass) / pg_catalog.current_setting('block_size')::bigint
    AS pages,
  (extract(epoch FROM statement_timestamp()) * 1000000)::bigint - $1::bigint AS cut_off,
  current_user AS role;
