-- Purge by keys, one batch: removes the closed rows between two keys, its own short transaction.
--
-- Locking: as in purge_pages.sql.
-- Variables: schema; after and last, quoted keys; cut_off, microseconds.
DELETE FROM :"schema".limits
WHERE expires_at < :cut_off
  AND key = ANY (ARRAY (
    SELECT key
    FROM :"schema".limits
    WHERE key > :after AND key <= :last AND expires_at < :cut_off
    ORDER BY key
    FOR UPDATE SKIP LOCKED
  ));
