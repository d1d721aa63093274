-- Doctor: logins that are both a writer and a purger. Such a one sees live rows while it purges.
-- Superusers are members of everything and are not listed; roles are not logins.
--
-- Variables: writer, purger. Result, one row: logins, NULL if there are none.
SELECT string_agg(l.rolname, ', ' ORDER BY l.rolname) AS logins
FROM pg_catalog.pg_roles AS l
JOIN pg_catalog.pg_roles AS w ON w.rolname = :'writer'
JOIN pg_catalog.pg_roles AS p ON p.rolname = :'purger'
WHERE l.rolcanlogin AND NOT l.rolsuper
  AND pg_catalog.pg_has_role(l.oid, w.oid, 'USAGE')
  AND pg_catalog.pg_has_role(l.oid, p.oid, 'USAGE');
