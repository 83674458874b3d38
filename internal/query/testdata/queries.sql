CREATE VIEW r AS SELECT *, outcome IN ('ok', 'check_failed', 'timeout') AS timed,
       outcome NOT IN ('ok', 'cancelled', 'interrupted', 'script_error', 'client_error') AS failed
FROM read_parquet('results/*/requests/*/*.parquet', hive_partitioning = true) WHERE NOT warmup;

-- 1 by step
SELECT step, count(*) n, round(100 * avg(failed::int), 3) err_pct,
       (quantile_disc(latency_ns, [0.5, 0.9, 0.99]) FILTER (timed))::BIGINT[] AS p FROM r GROUP BY ALL ORDER BY n DESC;
-- 2 over time
SELECT time_bucket(INTERVAL '5 seconds', started_at) t, count(*) / 5.0 rps,
       quantile_disc(latency_ns, 0.99) FILTER (timed) / 1e6 p99_ms FROM r GROUP BY ALL ORDER BY t;
-- 3 checks
SELECT c.name, count(*) n, count(*) FILTER (NOT c.ok) failed FROM (SELECT unnest(checks) c FROM r) GROUP BY ALL;
-- 4 was the generator late?
SELECT agent, max(lateness_ns) / 1e6 worst_ms, quantile_disc(lateness_ns, 0.99) / 1e6 p99_ms,
       quantile_disc(queued_ns, 0.99) / 1e6 queued_p99_ms FROM r GROUP BY ALL;
-- 5 errors, first seen
SELECT outcome, error_code, error_message, count(*) n, min(started_at) AS first_seen FROM r
WHERE failed GROUP BY ALL ORDER BY n DESC;
-- 6 protocol versions side by side
PIVOT (SELECT step, protocol_version, quantile_disc(latency_ns, 0.99) / 1e6 p99 FROM r WHERE timed GROUP BY ALL)
ON protocol_version USING first(p99);
