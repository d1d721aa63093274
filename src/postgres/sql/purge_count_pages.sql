-- Purge, dry run: how many closed rows are in a range of pages. Locks nothing.
--
-- Variables: schema; first and past, two tids, the range; cut_off, microseconds. Result, one row: found.
SELECT count(*) AS found
FROM :"schema".limits
WHERE ctid >= :'first'::tid AND ctid < :'past'::tid AND expires_at < :cut_off;
