#!/usr/bin/env bash
# Plays the suite, or the files given, and then the plans of the hot statements, on Debian's server.
set -euo pipefail
cd "$(dirname "$0")/../.."

bindir=$(pg_config --bindir)
# In memory, where there is enough of it, as in test/support/start-database.ts, which has the measurement.
place=/dev/shm
room=$(df --output=avail --block-size=1M "$place" 2>/dev/null | tail -n 1 || true)
if [ "${room:-0}" -lt 3072 ]; then place=${TMPDIR:-/tmp}; fi
cluster=$(mktemp -d -p "$place")
port=$(node -e "const s = require('net').createServer().listen(0, '127.0.0.1', () => { console.log(s.address().port); s.close() })")
as_postgres() {
  # Postgres refuses to run as root.
  if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}
if [ "$(id -u)" = 0 ]; then chown postgres "$cluster"; fi
stop() {
  as_postgres "$bindir/pg_ctl" -D "$cluster/data" -m immediate stop >/dev/null || true
  rm -rf "$cluster"
}
trap stop EXIT
cd /
as_postgres "$bindir/initdb" -D "$cluster/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
as_postgres "$bindir/pg_ctl" -D "$cluster/data" -w -l "$cluster/log" -o \
  "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c max_connections=400 -c max_wal_size=512MB" start
cd - >/dev/null
export TEST_DATABASE_URL="postgres://postgres@127.0.0.1:$port/postgres"
if [ $# -gt 0 ]; then
  npm test -- "$@"
else
  # Once is enough for what brings a server of its own, needs none, or asks nothing of it that others do not.
  once=('test/unit/**' 'test/project/**' 'test/plays/model/**' 'test/console/stories.test.ts'
    'test/process/cli/**' 'test/process/start/**' 'test/process/postgres/embedded/**' 'test/process/main.test.ts'
    'test/process/host-list.test.ts' 'test/process/unreplicated.test.ts'
    'test/api/sandbox/**' 'test/api/client/**' 'test/api/cards/**' 'test/api/gateway/**' 'test/api/platform/http/**'
    'test/api/platform/concurrency/**' 'test/api/platform/telemetry/**' 'test/api/platform/openapi/**'
    'test/api/platform/outbound/**')
  npm test -- "${once[@]/#/--exclude=}"
fi
# What statements read depends on the planner, so on the version of the server.
npm run test:nightly -- plans
