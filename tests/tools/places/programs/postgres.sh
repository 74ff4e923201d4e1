# postgres.sh BIN SECONDS: a server whose backend works for one client.
bin=$1 seconds=$2
mkdir -p pg jd && chown -R postgres pg jd && chmod 700 pg && chmod a+x .
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
as "$bin/initdb" -D "$PWD/pg" -A trust --no-sync >/dev/null
(
  for _ in $(seq 80); do [ -S pg/.s.PGSQL.5432 ] && break; sleep 0.1; done
  end=$((SECONDS + seconds))
  while [ $SECONDS -lt $end ]; do echo 'select sum(a * 3 + a % 7) from generate_series(1, 300000) a where a % 3 <> 1;'; done |
    as "$bin/psql" -q -h "$PWD/pg" -d postgres
) >/dev/null 2>&1 &
export JITDUMPDIR=$PWD/jd
exec timeout "$((seconds + 2))" setpriv --reuid=postgres --regid=postgres --clear-groups "$bin/postgres" -D "$PWD/pg" -k "$PWD/pg" -c listen_addresses= \
  -c jit=on -c jit_above_cost=0 -c jit_profiling_support=on -c max_parallel_workers_per_gather=0
