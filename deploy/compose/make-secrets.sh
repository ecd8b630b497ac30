#!/usr/bin/env bash
# Makes the secrets of compose.yaml, one file each, in deploy/compose/secrets. Files that are there keep their content.
#   make-secrets.sh          also makes up a secret of the gateway, which only the sandbox accepts
#   make-secrets.sh FILE     takes the secret that the gateway issued from FILE; /dev/stdin asks for it (end with Ctrl-D)
set -euo pipefail
if [ $# -gt 1 ]; then
  echo "usage: $0 [FILE]" >&2
  exit 2
fi
given=${1:+$(cat "$1")}
if [ $# = 1 ] && [ -z "$given" ]; then
  echo "$1 is empty: it should have the secret that the gateway issued" >&2
  exit 1
fi
cd "$(dirname "$0")"
# Only this user reaches the folder.
mkdir -p secrets
chmod 700 secrets

make() {
  if [ ! -s "secrets/$1" ]; then
    printf '%s' "$2" > "secrets/$1"
    echo "made deploy/compose/secrets/$1"
  fi
  # The containers read it as user 10001, whatever the umask was when it was made.
  chmod 644 "secrets/$1"
}
random() { head -c "$1" /dev/urandom; }
hex() { random "$1" | od -An -v -tx1 | tr -d ' \n'; }

make database_password "$(hex 24)"
make database_url "postgres://ipn:$(cat secrets/database_password)@postgres:5432/ipn"
make api_key "$(hex 32)"
make data_encryption_key "$(random 32 | base64)"
if [ -n "$given" ]; then
  # Into the file that is there, which is the one that running containers see.
  printf '%s' "$given" > secrets/gateway_secret
  echo "wrote deploy/compose/secrets/gateway_secret"
fi
make gateway_secret "$(hex 32)"
