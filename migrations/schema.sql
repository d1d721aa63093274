CREATE SCHEMA limitrow;

ALTER SCHEMA limitrow OWNER TO owner;

CREATE DOMAIN limitrow.instant AS bigint
	CONSTRAINT instant_range CHECK (((VALUE >= 0) AND (VALUE <= '1152921504606846976'::bigint)));

ALTER DOMAIN limitrow.instant OWNER TO owner;

COMMENT ON DOMAIN limitrow.instant IS 'Microseconds since 1970 (UTC), up to 2^60: a window can be added without an overflow.';

CREATE DOMAIN limitrow.key_text AS text COLLATE pg_catalog."C"
	CONSTRAINT key_length CHECK (((octet_length(VALUE) >= 1) AND (octet_length(VALUE) <= 512)));

ALTER DOMAIN limitrow.key_text OWNER TO owner;

COMMENT ON DOMAIN limitrow.key_text IS 'A key: 1 to 512 bytes, in the order of its bytes.';

CREATE DOMAIN limitrow.not_negative AS bigint
	CONSTRAINT not_negative CHECK ((VALUE >= 0));

ALTER DOMAIN limitrow.not_negative OWNER TO owner;

COMMENT ON DOMAIN limitrow.not_negative IS 'A whole number, 0 or more.';

CREATE DOMAIN limitrow.positive AS bigint
	CONSTRAINT positive CHECK ((VALUE > 0));

ALTER DOMAIN limitrow.positive OWNER TO owner;

COMMENT ON DOMAIN limitrow.positive IS 'A whole number, 1 or more.';

CREATE DOMAIN limitrow.spent AS bigint
	CONSTRAINT spent_range CHECK (((VALUE >= 0) AND (VALUE <= '4611686018427387904'::bigint)));

ALTER DOMAIN limitrow.spent OWNER TO owner;

COMMENT ON DOMAIN limitrow.spent IS 'An amount in units, up to 2^62: two of them can be added without an overflow, if one is a spent_before.';

CREATE DOMAIN limitrow.spent_before AS bigint
	CONSTRAINT spent_before_range CHECK (((VALUE >= 0) AND (VALUE <= '4611686018427387903'::bigint)));

ALTER DOMAIN limitrow.spent_before OWNER TO owner;

COMMENT ON DOMAIN limitrow.spent_before IS 'An amount in units, below 2^62.';

CREATE FUNCTION limitrow.purge_batch(grace interval DEFAULT '00:01:00'::interval, batch integer DEFAULT 10000) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'limitrow', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  -- About as many pages as hold a batch of closed rows; PostgreSQL 13 cannot read a range of pages.
  has_ranges constant boolean := current_setting('server_version_num')::integer >= 140000;
  pages constant bigint :=
    greatest(1, pg_relation_size('limits'::regclass) / current_setting('block_size')::bigint);
  width constant bigint := CASE WHEN has_ranges THEN 512 ELSE pages END;
  ranges constant bigint := (pages + width - 1) / width;
  -- A call reads 256 MB at most, so that one over live rows is short too.
  most constant bigint := least(ranges, 64);
  cut_off constant bigint :=
    (extract(epoch FROM statement_timestamp() - purge_batch.grace) * 1000000)::bigint;
  place bigint;
  found bigint;
  removed bigint := 0;
BEGIN
  IF purge_batch.grace < interval '10 seconds' THEN
    RAISE EXCEPTION 'the grace is too short: expected at least 10 seconds, the longest that a check may take'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF purge_batch.batch < 1 THEN
    RAISE EXCEPTION 'the batch is 0 or less: expected at least 1 row'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR i IN 1..most LOOP
    place := nextval('purge_ranges'::regclass) % ranges * width;
    -- As in the command: rows in use are passed over, and the age is tested on the locked row.
    DELETE FROM limits AS l
    WHERE l.ctid = ANY (ARRAY (
        SELECT c.ctid
        FROM limits AS c
        WHERE c.ctid >= format('(%s,0)', place)::tid AND c.ctid < format('(%s,0)', place + width)::tid
          AND c.expires_at < cut_off
        LIMIT purge_batch.batch - removed
        FOR UPDATE SKIP LOCKED
      ))
      AND l.expires_at < cut_off;
    GET DIAGNOSTICS found = ROW_COUNT;
    removed := removed + found;
    EXIT WHEN removed >= purge_batch.batch;
  END LOOP;
  RETURN removed;
END
$$;

ALTER FUNCTION limitrow.purge_batch(grace interval, batch integer) OWNER TO limitrow_purger;

COMMENT ON FUNCTION limitrow.purge_batch(grace interval, batch integer) IS 'Removes at most batch rows whose window closed longer than grace ago; gives their number.';

CREATE TABLE limitrow.limits (
    key limitrow.key_text NOT NULL,
    window_start limitrow.instant NOT NULL,
    tokens limitrow.spent NOT NULL,
    expires_at limitrow.not_negative NOT NULL,
    granted limitrow.not_negative NOT NULL,
    cost limitrow.positive NOT NULL,
    capacity limitrow.positive NOT NULL,
    rate limitrow.not_negative NOT NULL,
    unit limitrow.positive NOT NULL,
    span limitrow.positive NOT NULL,
    previous limitrow.spent_before,
    hits bigint[]
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_cost_delay='0');

ALTER TABLE ONLY limitrow.limits FORCE ROW LEVEL SECURITY;

ALTER TABLE limitrow.limits OWNER TO owner;

COMMENT ON TABLE limitrow.limits IS 'A limit is a row: what was spent of it, and when. No row means nothing was spent.';

COMMENT ON COLUMN limitrow.limits.key IS 'Which limit, for whom: rule/algorithm/parts. 1 to 512 bytes.';

COMMENT ON COLUMN limitrow.limits.window_start IS 'The mark: the instant of the latest charge, microseconds since 1970 (UTC).';

COMMENT ON COLUMN limitrow.limits.tokens IS 'What was spent and not given back at window_start, in units.';

COMMENT ON COLUMN limitrow.limits.expires_at IS 'From this instant on the row is judged as if it were missing, so that a purge changes no verdict.';

COMMENT ON COLUMN limitrow.limits.granted IS 'What the latest statement granted, in units: the verdict, read by RETURNING from the locked row.';

COMMENT ON COLUMN limitrow.limits.cost IS 'The cost of one request of the latest statement, in units; granted is a multiple of it.';

COMMENT ON COLUMN limitrow.limits.capacity IS 'The most that can be spent at once, in units, by the rule of the latest check.';

COMMENT ON COLUMN limitrow.limits.rate IS 'Token bucket: units given back per microsecond. 0 for the windows.';

COMMENT ON COLUMN limitrow.limits.unit IS 'Units per token: chosen so that rate is a whole number and nothing is ever rounded.';

COMMENT ON COLUMN limitrow.limits.span IS 'The window of the rule of the latest check, microseconds.';

COMMENT ON COLUMN limitrow.limits.previous IS 'Sliding window counter only: what was spent in the window before.';

COMMENT ON COLUMN limitrow.limits.hits IS 'Sliding log only: the instant of each hit, sorted.';

CREATE TABLE limitrow.migrations (
    version bigint NOT NULL,
    name text NOT NULL,
    checksum text,
    applied_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT migrations_version_check CHECK ((version > 0))
);

ALTER TABLE limitrow.migrations OWNER TO owner;

COMMENT ON TABLE limitrow.migrations IS 'One row per migration applied, written in the same transaction.';

COMMENT ON COLUMN limitrow.migrations.checksum IS 'SHA-256 of the text that was applied; NULL if it was applied by hand.';

CREATE SEQUENCE limitrow.purge_ranges
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    NO MAXVALUE
    CACHE 1
    CYCLE;

ALTER TABLE limitrow.purge_ranges OWNER TO owner;

COMMENT ON SEQUENCE limitrow.purge_ranges IS 'Ranges of pages that purge_batch() has looked at, so that each call goes on where the last one stopped.';

ALTER TABLE ONLY limitrow.limits
    ADD CONSTRAINT limits_pkey PRIMARY KEY (key);

ALTER TABLE ONLY limitrow.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (version);

ALTER TABLE limitrow.limits ENABLE ROW LEVEL SECURITY;

CREATE POLICY limits_purger_delete ON limitrow.limits FOR DELETE TO limitrow_purger USING (((expires_at)::bigint <= ( SELECT ((EXTRACT(epoch FROM statement_timestamp()) * (1000000)::numeric))::bigint AS int8)));

CREATE POLICY limits_purger_lock ON limitrow.limits FOR UPDATE TO limitrow_purger USING (((expires_at)::bigint <= ( SELECT ((EXTRACT(epoch FROM statement_timestamp()) * (1000000)::numeric))::bigint AS int8))) WITH CHECK (false);

CREATE POLICY limits_purger_select ON limitrow.limits FOR SELECT TO limitrow_purger USING (((expires_at)::bigint <= ( SELECT ((EXTRACT(epoch FROM statement_timestamp()) * (1000000)::numeric))::bigint AS int8)));

CREATE POLICY limits_reader_select ON limitrow.limits FOR SELECT TO limitrow_reader USING (true);

CREATE POLICY limits_writer_delete ON limitrow.limits FOR DELETE TO limitrow_writer USING (true);

CREATE POLICY limits_writer_insert ON limitrow.limits FOR INSERT TO limitrow_writer WITH CHECK (true);

CREATE POLICY limits_writer_select ON limitrow.limits FOR SELECT TO limitrow_writer USING (true);

CREATE POLICY limits_writer_update ON limitrow.limits FOR UPDATE TO limitrow_writer USING (true) WITH CHECK (true);

GRANT USAGE ON SCHEMA limitrow TO limitrow_writer;
GRANT USAGE ON SCHEMA limitrow TO limitrow_purger;
GRANT USAGE ON SCHEMA limitrow TO limitrow_reader;

REVOKE ALL ON FUNCTION limitrow.purge_batch(grace interval, batch integer) FROM PUBLIC;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE limitrow.limits TO limitrow_writer;
GRANT SELECT,DELETE ON TABLE limitrow.limits TO limitrow_purger;
GRANT SELECT ON TABLE limitrow.limits TO limitrow_reader;

GRANT UPDATE(granted) ON TABLE limitrow.limits TO limitrow_purger;

GRANT SELECT ON TABLE limitrow.migrations TO limitrow_writer;
GRANT SELECT ON TABLE limitrow.migrations TO limitrow_purger;
GRANT SELECT ON TABLE limitrow.migrations TO limitrow_reader;

GRANT USAGE ON SEQUENCE limitrow.purge_ranges TO limitrow_purger;

