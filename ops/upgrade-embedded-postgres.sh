#!/bin/sh
# Upgrades the embedded database to another major version of Postgres: dumps it with the programs of the version that
# made it, and restores the dump into a new cluster, which takes its place. The old cluster is kept beside it.
# Interrupted, it leaves the old cluster where it was, and can be run again.
set -eu

if [ $# -ne 3 ]; then
  echo "usage: sh $0 CLUSTER OLD_BIN NEW_BIN" >&2
  exit 2
fi
cluster=$1 old=$2 new=$3
version=$(cat "$cluster/PG_VERSION")
kept=$cluster.v$version
for program in pg_ctl pg_dump pg_restore psql; do
  if [ ! -x "$old/$program" ]; then
    echo "there is no $old/$program: install Postgres $version (on Debian, the package postgresql-$version), or name the folder of its programs" >&2
    exit 1
  fi
done
if [ -e "$kept" ]; then
  echo "$kept exists already: move it away first" >&2
  exit 1
fi

# The programs refuse to run as root.
owner=$(ls -ld "$cluster" | awk '{ print $3 }')
as_owner() {
  if [ "$(id -u)" = 0 ]; then runuser -u "$owner" -- "$@"; else "$@"; fi
}
make_folder() {
  rm -rf "$1"
  mkdir -m 700 "$1"
  if [ "$(id -u)" = 0 ]; then chown "$owner" "$1"; fi
}

work=$(mktemp -d /tmp/ipn-upgrade-XXXXXX)
fresh=$cluster.new
make_folder "$work"
clean_up() {
  as_owner "$old/pg_ctl" -D "$cluster" -m fast stop >/dev/null 2>&1 || true
  as_owner "$new/pg_ctl" -D "$fresh" -m fast stop >/dev/null 2>&1 || true
  rm -rf "$work" "$fresh"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

PGHOST=$work PGUSER=postgres PGDATABASE=postgres PGPASSWORD=$(cat "$cluster/ipn-password")
export PGHOST PGUSER PGDATABASE PGPASSWORD
cd "$work"

start() { # BIN CLUSTER
  as_owner "$1/pg_ctl" -D "$2" -w -t 600 -l "$work/log" -o "-c listen_addresses= -k $work" start >/dev/null || {
    cat "$work/log" >&2
    exit 1
  }
}

echo "1/3 dumping the database with Postgres $version"
start "$old" "$cluster"
as_owner "$old/pg_dump" --format=custom --file="$work/dump"
as_owner "$old/pg_ctl" -D "$cluster" -w -m fast stop >/dev/null

echo "2/3 restoring it into a new cluster"
make_folder "$fresh"
as_owner "$new/initdb" -D "$fresh" -U postgres --auth=scram-sha-256 --pwfile="$cluster/ipn-password" \
  --encoding=UTF8 --locale=C --data-checksums --no-instructions >/dev/null
as_owner cp "$cluster/ipn-password" "$fresh/ipn-password"
as_owner chmod 600 "$fresh/ipn-password"
start "$new" "$fresh"
as_owner "$old/pg_restore" --exit-on-error --single-transaction --dbname=postgres "$work/dump"
# The plans of the first statements need statistics, which a dump does not have.
as_owner "$old/psql" --quiet --command='vacuum analyze'
as_owner "$new/pg_ctl" -D "$fresh" -w -m fast stop >/dev/null

echo "3/3 putting it in place"
mv "$cluster" "$kept"
mv "$fresh" "$cluster"
echo "done: start the service, and remove $kept when everything is as it should be"
