-- Takes down purge_batch(). A pg_cron job that calls it fails from here on: cron.unschedule() it first.
--
-- By hand:  psql -v schema=limitrow -1 -f 0002_add_purge_batch.down.sql

DROP FUNCTION :"schema".purge_batch(interval, integer);
DROP SEQUENCE :"schema".purge_ranges;
DELETE FROM :"schema".migrations WHERE version = 2;
