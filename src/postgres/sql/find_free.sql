-- Find free: which of the keys' rows nobody holds at this moment. Asked after a batch met a lock, to tell
-- the slow key from its neighbours without waiting for it again.
--
-- Parameters: $1 text[] keys. Result: the keys whose rows are there and free.
SELECT key FROM :"schema".limits WHERE key = ANY ($1::text[]) FOR NO KEY UPDATE SKIP LOCKED;
