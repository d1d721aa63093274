-- Doctor: the table, its rights and policies, and how it fares. Reads the catalogs alone.
--
-- Variables: schema, table, writer, purger, reader. Result, one row; lists are NULL where nothing is amiss.
SELECT
  c.relrowsecurity AND c.relforcerowsecurity AS is_forced,
  (
    SELECT string_agg(privilege, ', ')
    FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed (privilege)
    WHERE NOT pg_catalog.has_table_privilege(c.oid, privilege)
  ) AS missing_privileges,
  (
    SELECT string_agg(format('%s for %s', kind, role), ', ' ORDER BY role, kind)
    FROM (VALUES
      (:'writer', 'SELECT', 'r'), (:'writer', 'INSERT', 'a'), (:'writer', 'UPDATE', 'w'), (:'writer', 'DELETE', 'd'),
      (:'purger', 'SELECT', 'r'), (:'purger', 'UPDATE', 'w'), (:'purger', 'DELETE', 'd'),
      (:'reader', 'SELECT', 'r')
    ) AS needed (role, kind, command)
    WHERE NOT EXISTS (
      SELECT FROM pg_catalog.pg_policy AS p
      JOIN pg_catalog.pg_roles AS r ON r.oid = ANY (p.polroles)
      WHERE p.polrelid = c.oid AND r.rolname = role AND p.polcmd IN (command::"char", '*')
    )
  ) AS missing_policies,
  (
    SELECT string_agg(t.relname, ', ')
    FROM pg_catalog.pg_class AS t
    WHERE t.relnamespace = c.relnamespace AND t.relkind IN ('r', 'p') AND t.relname <> 'migrations'
      AND NOT (t.relrowsecurity AND t.relforcerowsecurity)
  ) AS unscoped_tables,
  (
    SELECT string_agg(i.relname, ', ')
    FROM pg_catalog.pg_index AS x
    JOIN pg_catalog.pg_class AS i ON i.oid = x.indexrelid
    WHERE x.indrelid = c.oid AND NOT x.indisprimary
  ) AS extra_indexes,
  coalesce((
    SELECT option_value::integer FROM pg_catalog.pg_options_to_table(c.reloptions)
    WHERE option_name = 'fillfactor'
  ), 100) AS fillfactor,
  coalesce(s.n_live_tup, 0) AS live,
  coalesce(s.n_dead_tup, 0) AS dead,
  coalesce(s.n_tup_upd, 0) AS updates,
  coalesce(s.n_tup_hot_upd, 0) AS hot_updates,
  pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::bigint AS pages,
  pg_catalog.pg_get_userbyid(c.relowner) AS owner,
  (
    SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles
    WHERE rolname = coalesce(nullif(:'backup_role', ''), pg_catalog.pg_get_userbyid(c.relowner))
  ) AS can_back_up
FROM pg_catalog.pg_class AS c
LEFT JOIN pg_catalog.pg_stat_all_tables AS s ON s.relid = c.oid
WHERE c.oid = pg_catalog.to_regclass(:'table');
