-- Doctor: who the session is, and what the server is to it. Reads nothing that a role without rights may
-- not read.
--
-- Variables: schema, writer. Result, one row.
SELECT
  pg_catalog.current_setting('server_version') AS version,
  pg_catalog.current_setting('server_version_num')::integer AS version_num,
  current_user AS role,
  r.rolsuper AS is_super,
  r.rolbypassrls AS bypasses,
  EXISTS (
    SELECT FROM pg_catalog.pg_roles
    WHERE rolname = :'writer' AND pg_catalog.pg_has_role(oid, 'USAGE')
  ) AS is_writer,
  pg_catalog.pg_is_in_recovery() AS in_recovery,
  pg_catalog.current_setting('transaction_read_only') = 'on' AS is_read_only,
  (
    SELECT string_agg(DISTINCT setting, ', ')
    FROM pg_catalog.pg_db_role_setting AS s
    CROSS JOIN unnest(s.setconfig) AS setting
    WHERE s.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
      AND s.setrole IN (0, (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = session_user))
      AND setting LIKE 'default\_transaction\_isolation=%'
      AND setting <> 'default_transaction_isolation=read committed'
  ) AS isolation,
  (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now,
  pg_catalog.to_regclass(:'table') IS NOT NULL AS has_table
FROM pg_catalog.pg_roles AS r
WHERE r.rolname = current_user;
