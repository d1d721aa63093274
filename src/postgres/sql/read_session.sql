-- What a new session is: asked once per connection, before the first check.
-- Result, one row: version of the schema, whether the session is the writer, whether it can write, and
-- whether the settings that it was started with arrived (a pooler may have dropped them).
SELECT
  (SELECT max(version) FROM :"schema".migrations) AS version,
  EXISTS (
    SELECT FROM pg_catalog.pg_roles
    WHERE rolname = :'writer' AND pg_catalog.pg_has_role(oid, 'USAGE')
  ) AS is_writer,
  pg_catalog.current_setting('transaction_read_only') = 'off' AS is_writable,
  pg_catalog.current_setting('limitrow.session', true) IS NOT DISTINCT FROM 'direct' AS has_settings,
  current_user AS role;
