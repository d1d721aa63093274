-- Purge: is the table distributed by Citus? Asked only where Citus is there.
-- Variable: table, the qualified name. Result, one row: is_distributed.
SELECT EXISTS (
  SELECT FROM pg_catalog.pg_dist_partition WHERE logicalrelid = :'table'::regclass
) AS is_distributed;
