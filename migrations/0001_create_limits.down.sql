-- Takes down everything: the rows, the table, the ledger, the schema and the roles.
--
-- By hand:  psql -v schema=limitrow -1 -f 0001_create_limits.down.sql
-- A role goes only where nothing else needs it: no grant in another database, no login in it. The
-- schema goes only if nothing of anybody else's is in it.

\set writer :schema '_writer'
\set purger :schema '_purger'
\set reader :schema '_reader'

DROP TABLE :"schema".limits;
DROP DOMAIN :"schema".key_text, :"schema".instant, :"schema".spent, :"schema".spent_before, :"schema".not_negative,
  :"schema".positive;
DROP TABLE :"schema".migrations;
REVOKE USAGE ON SCHEMA :"schema" FROM :"writer", :"purger", :"reader";

SELECT set_config('limitrow.schema', :'schema', true);
SELECT set_config('limitrow.roles', concat_ws(',', :'writer', :'purger', :'reader'), true);
DO $$
DECLARE
  name text;
BEGIN
  BEGIN
    EXECUTE format('DROP SCHEMA %I', current_setting('limitrow.schema'));
  EXCEPTION WHEN dependent_objects_still_exist THEN
    RAISE NOTICE 'schema % stays: other objects are in it', current_setting('limitrow.schema');
  END;
  FOREACH name IN ARRAY string_to_array(current_setting('limitrow.roles'), ',') LOOP
    IF EXISTS (
      SELECT FROM pg_catalog.pg_auth_members AS m
      JOIN pg_catalog.pg_roles AS login ON login.oid = m.member
      WHERE m.roleid = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = name)
        AND login.rolname <> current_user
    ) THEN
      RAISE NOTICE 'role % stays: other roles are members of it', name;
    ELSE
      BEGIN
        EXECUTE format('DROP ROLE IF EXISTS %I', name);
      EXCEPTION WHEN dependent_objects_still_exist OR insufficient_privilege THEN
        RAISE NOTICE 'role % stays: something else needs it, or it is not ours to drop', name;
      END;
    END IF;
  END LOOP;
END
$$;
