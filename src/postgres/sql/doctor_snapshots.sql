-- Doctor: who keeps an old snapshot, so that dead rows cannot be cleared away. How long a transaction of
-- another role is open is shown only to those who may see it; for the others its snapshot's age in
-- transactions has to do.
--
-- Variable: age, microseconds. Result, one row per holder: text.
SELECT format('process %s (role %s, application %s%s)', pid, coalesce(usename, 'unknown'),
              coalesce(nullif(application_name, ''), 'unnamed'),
              ', open for ' || date_trunc('second', statement_timestamp() - xact_start)) AS holder
FROM pg_catalog.pg_stat_activity
WHERE pid <> pg_catalog.pg_backend_pid() AND datname = current_database()
  AND (xact_start < statement_timestamp() - :age * interval '1 microsecond' AND backend_xmin IS NOT NULL
    OR age(backend_xmin) > 1000000)
UNION ALL
SELECT format('prepared transaction %s (role %s)', gid, owner)
FROM pg_catalog.pg_prepared_xacts
WHERE database = current_database() AND prepared < statement_timestamp() - :age * interval '1 microsecond'
UNION ALL
SELECT format('replication slot %s', slot_name)
FROM pg_catalog.pg_replication_slots
WHERE age(xmin) > 1000000;
