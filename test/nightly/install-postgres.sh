#!/usr/bin/env bash
# Installs Debian's Postgres, which the loss of a primary and the suite on another server need, where it is missing.
set -euo pipefail

bindir=$(pg_config --bindir 2>/dev/null || true)
if [ ! -x "$bindir/initdb" ]; then apt-get update -q && apt-get install -qy postgresql libpq-dev; fi
