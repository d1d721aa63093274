-- Purge from inside the database, with pg_cron (Debian: postgresql-15-cron; shared_preload_libraries and
-- cron.database_name have to name it). One bounded batch every minute: at most 10,000 rows a call.
--
--   psql -v schema=limitrow -f schedule.sql
--
-- Run it as the login that the job is to run as: a member of the purger's role, with USAGE on the schema
-- cron. The function runs as the purger's role whoever calls it, and only members may.
\set command 'SELECT ' :schema '.purge_batch()'
SELECT cron.schedule('limitrow-purge', '* * * * *', :'command');
