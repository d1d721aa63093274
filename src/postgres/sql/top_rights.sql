-- Top, first question: is there a table, and does this session see its rows? A session that is neither
-- reader nor writer sees none, which must not be taken for an empty table.
--
-- Variables: table, reader, writer. Result, one row: is_there, may_see, role.
SELECT
  limits.oid IS NOT NULL AS is_there,
  NOT coalesce(pg_catalog.row_security_active(limits.oid), false)
    OR EXISTS (
      SELECT FROM pg_catalog.pg_roles
      WHERE rolname IN (:'reader', :'writer') AND pg_catalog.pg_has_role(oid, 'USAGE')
    ) AS may_see,
  current_user AS role
FROM (SELECT pg_catalog.to_regclass(:'table')::oid AS oid) AS limits;
