-- What the session's role lacks for the migrations, as statements for an administrator to run.
-- A role that may create roles needs none of those on roles: it makes them itself.
--
-- Variables: schema, writer, purger, reader. Result, one row per statement, in order: text.
SELECT statement
FROM (
  SELECT 1 AS place, format('CREATE ROLE %I NOLOGIN;', name) AS statement
  FROM unnest(ARRAY[:'writer', :'purger', :'reader']) AS needed (name)
  WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = name)
    AND NOT (SELECT rolcreaterole OR rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)
  UNION ALL
  -- The purge function is handed over to the purger, which takes membership.
  SELECT 2, format('GRANT %I TO %I;', :'purger', current_user)
  WHERE NOT (SELECT rolcreaterole OR rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)
    AND NOT EXISTS (
      SELECT FROM pg_catalog.pg_roles
      WHERE rolname = :'purger' AND pg_catalog.pg_has_role(oid, 'USAGE')
    )
  UNION ALL
  SELECT 3, format('GRANT CREATE ON DATABASE %I TO %I;', current_database(), current_user)
  WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = :'schema')
    AND NOT pg_catalog.has_database_privilege(current_database(), 'CREATE')
  UNION ALL
  SELECT 4, format('ALTER SCHEMA %I OWNER TO %I;', :'schema', current_user)
  FROM pg_catalog.pg_namespace
  WHERE nspname = :'schema' AND NOT pg_catalog.pg_has_role(nspowner, 'USAGE')
) AS missing
ORDER BY place, statement;
