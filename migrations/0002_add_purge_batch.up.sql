-- purge_batch(): one bounded batch of the purge as a function, for pg_cron and for people with psql.
--
-- By hand:  psql -v schema=limitrow -1 -f 0002_add_purge_batch.up.sql
--
-- Owned by the purger's role and run as it, so that it can do what the policies let the purger do: see,
-- lock and delete rows whose window has closed, and nothing else. Only members of that role may call it.
-- A function cannot commit, so a call removes one batch, in the caller's transaction; pg_cron calls
-- it every minute. Each call goes on where the last one stopped: the sequence counts the page ranges
-- handed out, so that calls at the same moment work in different places.

\set purger :schema '_purger'

CREATE SEQUENCE :"schema".purge_ranges MINVALUE 0 CYCLE;
COMMENT ON SEQUENCE :"schema".purge_ranges IS
  'Ranges of pages that purge_batch() has looked at, so that each call goes on where the last one stopped.';
GRANT USAGE ON SEQUENCE :"schema".purge_ranges TO :"purger";

CREATE FUNCTION :"schema".purge_batch(
  grace interval DEFAULT '1 minute',
  batch integer DEFAULT 10000
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
-- Names are looked up where nobody but the owner of the schema can put anything; pg_temp comes last.
SET search_path = pg_catalog, :"schema", pg_temp
SET enable_seqscan = off
AS $function$
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
$function$;
COMMENT ON FUNCTION :"schema".purge_batch(interval, integer) IS
  'Removes at most batch rows whose window closed longer than grace ago; gives their number.';
REVOKE ALL ON FUNCTION :"schema".purge_batch(interval, integer) FROM PUBLIC;

-- To hand the function over takes membership in the new owner's role, and that role the right to create
-- here. Both are taken back at once: the schema's owner is not to see what the purger sees.
SELECT set_config('limitrow.schema', :'schema', true);
SELECT set_config('limitrow.purger', :'purger', true);
DO $$
DECLARE
  purger constant text := current_setting('limitrow.purger');
  hand_over constant text := format('ALTER FUNCTION %I.purge_batch(interval, integer) OWNER TO %I',
                                    current_setting('limitrow.schema'), purger);
BEGIN
  EXECUTE format('GRANT CREATE ON SCHEMA %I TO %I', current_setting('limitrow.schema'), purger);
  BEGIN
    EXECUTE hand_over;
  EXCEPTION WHEN insufficient_privilege THEN
    EXECUTE format('GRANT %I TO %I', purger, current_user);
    EXECUTE hand_over;
    EXECUTE format('REVOKE %I FROM %I', purger, current_user);
  END;
  EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM %I', current_setting('limitrow.schema'), purger);
END
$$;

INSERT INTO :"schema".migrations (version, name) VALUES (2, 'add_purge_batch');
