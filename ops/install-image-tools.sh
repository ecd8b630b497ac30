#!/usr/bin/env bash
# Installs what the drill of the image needs: buildah builds the image, debootstrap makes a base where no image registry is
# reached, docker-compose reads compose.yaml. Does nothing where they are present; otherwise it needs root and a mirror of
# Debian or Ubuntu.
set -euo pipefail

missing=()
for tool in buildah debootstrap docker-compose; do
  command -v "$tool" >/dev/null || missing+=("$tool")
done
# Debian's own keys: on Ubuntu, debootstrap has to be given them.
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
if [ "${#missing[@]}" = 0 ]; then exit 0; fi

if [ "$(id -u)" != 0 ]; then
  echo "ops/install-image-tools.sh: installing ${missing[*]} needs root" >&2
  exit 1
fi
apt-get update -q
apt-get install -qy --no-install-recommends "${missing[@]}"
