-- Purge by keys on a table distributed by Citus, one batch. Citus has no SKIP LOCKED across shards, so
-- this may wait for a row in use, for lock_timeout at most; the age is tested again on the locked row.
--
-- Variables: schema; after and last, quoted keys; cut_off, microseconds.
DELETE FROM :"schema".limits
WHERE key > :after AND key <= :last AND expires_at < :cut_off;
