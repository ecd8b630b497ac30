#!/usr/bin/env bash
# Makes the secrets of compose.yaml, one file each, in deploy/compose/secrets. Files that are there stay as they are; for a
# real gateway, write the secret that it issued into gateway_secret first.
set -euo pipefail
cd "$(dirname "$0")"
# Only this user reaches the folder. The containers read single files of it as user 10001, so these are readable.
mkdir -p secrets
chmod 700 secrets

make() {
  if [ -s "secrets/$1" ]; then return; fi
  printf '%s' "$2" > "secrets/$1"
  chmod 644 "secrets/$1"
  echo "made deploy/compose/secrets/$1"
}
make database_password "$(openssl rand -hex 24)"
make database_url "postgres://ipn:$(cat secrets/database_password)@postgres:5432/ipn"
make api_key "$(openssl rand -hex 32)"
make data_encryption_key "$(openssl rand -base64 32)"
make gateway_secret "$(openssl rand -hex 32)"
