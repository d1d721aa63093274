-- What a new session is: asked once per connection, before the first check. Reads nothing that a role
-- without rights may not read, so that it can say which right is missing.
-- Result, one row: whether the ledger is there, whether the session is the writer, whether the server
-- takes writes, the session's role, and whether its start-up settings arrived.
SELECT
  EXISTS (
    SELECT FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = :'schema' AND c.relname = 'migrations'
  ) AS has_ledger,
  EXISTS (
    SELECT FROM pg_catalog.pg_roles
    WHERE rolname = :'writer' AND pg_catalog.pg_has_role(oid, 'USAGE')
  ) AS is_writer,
  pg_catalog.current_setting('transaction_read_only') = 'off' AS is_writable,
  current_user AS role,
  coalesce(pg_catalog.current_setting('limitrow.session', true) = 'direct', false) AS is_direct;
