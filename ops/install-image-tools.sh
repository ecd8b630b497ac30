#!/usr/bin/env bash
# Installs what the drill of the image needs: buildah builds the image, debootstrap makes a base where no image registry is
# reached, docker-compose reads compose.yaml. Installs nothing where they are present; otherwise it needs a mirror of Debian or
# Ubuntu. Exit code 0 if the drill can be played.
set -euo pipefail

if [ "$(id -u)" != 0 ]; then
  echo 'ops/install-image-tools.sh: the image is built and run as root only' >&2
  exit 1
fi

missing=()
for tool in buildah debootstrap docker-compose; do
  command -v "$tool" >/dev/null || missing+=("$tool")
done
# Debian's own keys: on Ubuntu, debootstrap has to be given them.
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
if [ "${#missing[@]}" != 0 ]; then
  apt-get update -q
  apt-get install -qy --no-install-recommends "${missing[@]}"
fi

mirror=http://deb.debian.org/debian
if ! wget --quiet --spider --timeout=20 --tries=2 "$mirror/dists/bookworm/Release"; then
  echo "ops/install-image-tools.sh: $mirror, from which the base of the image is made, cannot be reached" >&2
  exit 1
fi
