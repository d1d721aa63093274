-- The schema, the ledger of migrations, the table of limits and its roles.
--
-- By hand:  psql -v schema=limitrow -1 -f 0001_create_limits.up.sql
-- The roles carry the schema's name because roles belong to the whole cluster: two schemas, or two
-- databases, must not share one by accident.

\set writer :schema '_writer'
\set purger :schema '_purger'
\set reader :schema '_reader'
-- The database's clock as the statements read it: whole microseconds since 1970. As a subquery it is
-- worked out once for a statement; in a policy it would else be worked out for each row.
\set now '(SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)'

-- Roles first. One that is there is taken as it is, so that a DBA can make them beforehand; one that
-- another migrator makes at this moment is as good.
SELECT set_config('limitrow.roles', concat_ws(',', :'writer', :'purger', :'reader'), true);
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY string_to_array(current_setting('limitrow.roles'), ',') LOOP
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = name) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', name);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL;
      END;
    END IF;
  END LOOP;
END
$$;

CREATE SCHEMA IF NOT EXISTS :"schema";
GRANT USAGE ON SCHEMA :"schema" TO :"writer", :"purger", :"reader";

-- The ledger. No row-level security: it holds no one's data, only the owner may write it, and
-- limiters read it to know what they talk to.
CREATE TABLE :"schema".migrations (
  version bigint PRIMARY KEY CHECK (version > 0),
  name text NOT NULL,
  checksum text,
  applied_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
COMMENT ON TABLE :"schema".migrations IS
  'One row per migration applied, written in the same transaction.';
COMMENT ON COLUMN :"schema".migrations.checksum IS
  'SHA-256 of the text that was applied; NULL if it was applied by hand.';
GRANT SELECT ON :"schema".migrations TO :"writer", :"purger", :"reader";

-- The ranges of the columns. They are domains, because PostgreSQL parses and plans a table's CHECKs anew
-- for each statement that writes to it, and keeps a domain's for the session; for one key the CHECKs
-- cost a quarter of the statement.
CREATE DOMAIN :"schema".key_text AS text COLLATE "C"
  CONSTRAINT key_length CHECK (octet_length(VALUE) BETWEEN 1 AND 512);
CREATE DOMAIN :"schema".instant AS bigint CONSTRAINT instant_range CHECK (VALUE BETWEEN 0 AND 1152921504606846976);
CREATE DOMAIN :"schema".spent AS bigint CONSTRAINT spent_range CHECK (VALUE BETWEEN 0 AND 4611686018427387904);
CREATE DOMAIN :"schema".spent_before AS bigint
  CONSTRAINT spent_before_range CHECK (VALUE BETWEEN 0 AND 4611686018427387903);
CREATE DOMAIN :"schema".not_negative AS bigint CONSTRAINT not_negative CHECK (VALUE >= 0);
CREATE DOMAIN :"schema".positive AS bigint CONSTRAINT positive CHECK (VALUE > 0);
COMMENT ON DOMAIN :"schema".key_text IS
  'A key: 1 to 512 bytes, in the order of its bytes.';
COMMENT ON DOMAIN :"schema".instant IS
  'Microseconds since 1970 (UTC), up to 2^60: a window can be added without an overflow.';
COMMENT ON DOMAIN :"schema".spent IS
  'An amount in units, up to 2^62: two of them can be added without an overflow, if one is a spent_before.';
COMMENT ON DOMAIN :"schema".spent_before IS
  'An amount in units, below 2^62.';
COMMENT ON DOMAIN :"schema".not_negative IS
  'A whole number, 0 or more.';
COMMENT ON DOMAIN :"schema".positive IS
  'A whole number, 1 or more.';

CREATE TABLE :"schema".limits (
  key :"schema".key_text PRIMARY KEY,
  window_start :"schema".instant NOT NULL,
  tokens :"schema".spent NOT NULL,
  expires_at :"schema".not_negative NOT NULL,
  granted :"schema".not_negative NOT NULL,
  cost :"schema".positive NOT NULL,
  capacity :"schema".positive NOT NULL,
  rate :"schema".not_negative NOT NULL,
  unit :"schema".positive NOT NULL,
  span :"schema".positive NOT NULL,
  previous :"schema".spent_before,
  hits bigint[]
)
-- Half of each page stays free, so that an update finds room beside its row and touches no index (HOT).
-- There is no index but the primary key for the same reason: one on expires_at would end every HOT
-- update. The purge walks the table instead. A table updated this often is vacuumed on a count of
-- dead rows rather than a share of the table.
WITH (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.05,
  autovacuum_vacuum_cost_delay = 0
);
COMMENT ON TABLE :"schema".limits IS
  'A limit is a row: what was spent of it, and when. No row means nothing was spent.';
COMMENT ON COLUMN :"schema".limits.key IS
  'Which limit, for whom: rule/algorithm/parts. 1 to 512 bytes.';
COMMENT ON COLUMN :"schema".limits.window_start IS
  'The mark: the instant of the latest charge, microseconds since 1970 (UTC).';
COMMENT ON COLUMN :"schema".limits.tokens IS
  'What was spent and not given back at window_start, in units.';
COMMENT ON COLUMN :"schema".limits.expires_at IS
  'From this instant on the row is judged as if it were missing, so that a purge changes no verdict.';
COMMENT ON COLUMN :"schema".limits.granted IS
  'What the latest statement granted, in units: the verdict, read by RETURNING from the locked row.';
COMMENT ON COLUMN :"schema".limits.cost IS
  'The cost of one request of the latest statement, in units; granted is a multiple of it.';
COMMENT ON COLUMN :"schema".limits.capacity IS
  'The most that can be spent at once, in units, by the rule of the latest check.';
COMMENT ON COLUMN :"schema".limits.rate IS
  'Token bucket: units given back per microsecond. 0 for the windows.';
COMMENT ON COLUMN :"schema".limits.unit IS
  'Units per token: chosen so that rate is a whole number and nothing is ever rounded.';
COMMENT ON COLUMN :"schema".limits.span IS
  'The window of the rule of the latest check, microseconds.';
COMMENT ON COLUMN :"schema".limits.previous IS
  'Sliding window counter only: what was spent in the window before.';
COMMENT ON COLUMN :"schema".limits.hits IS
  'Sliding log only: the instant of each hit, sorted.';

-- Forced, so that it binds the owner too. No policy for a role means that it sees and writes nothing,
-- whatever was granted to it.
ALTER TABLE :"schema".limits ENABLE ROW LEVEL SECURITY;
ALTER TABLE :"schema".limits FORCE ROW LEVEL SECURITY;

-- The writer: the limiter. An upsert needs all three of SELECT, INSERT and UPDATE; DELETE is for reset.
GRANT SELECT, INSERT, UPDATE, DELETE ON :"schema".limits TO :"writer";
CREATE POLICY limits_writer_select ON :"schema".limits FOR SELECT TO :"writer" USING (true);
CREATE POLICY limits_writer_insert ON :"schema".limits FOR INSERT TO :"writer" WITH CHECK (true);
CREATE POLICY limits_writer_update ON :"schema".limits FOR UPDATE TO :"writer" USING (true) WITH CHECK (true);
CREATE POLICY limits_writer_delete ON :"schema".limits FOR DELETE TO :"writer" USING (true);

-- The purger: sees and deletes closed rows, and cannot see a live one. To lock a row before deleting it
-- needs UPDATE on some column; WITH CHECK (false) means that it can lock and never change.
GRANT SELECT, DELETE, UPDATE (granted) ON :"schema".limits TO :"purger";
CREATE POLICY limits_purger_select ON :"schema".limits FOR SELECT TO :"purger" USING (expires_at <= :now);
CREATE POLICY limits_purger_lock ON :"schema".limits FOR UPDATE TO :"purger" USING (expires_at <= :now) WITH CHECK (false);
CREATE POLICY limits_purger_delete ON :"schema".limits FOR DELETE TO :"purger" USING (expires_at <= :now);

-- The reader: dashboards and `limitrow top`.
GRANT SELECT ON :"schema".limits TO :"reader";
CREATE POLICY limits_reader_select ON :"schema".limits FOR SELECT TO :"reader" USING (true);

INSERT INTO :"schema".migrations (version, name) VALUES (1, 'create_limits');
