#!/usr/bin/env bash
# tools/fresh_root.sh [VERB...]: checks that the README's commands work on a bare Debian 12 (default: mnist test).
# Makes a minimal root with only git and sudo from this machine's apt sources, clones the committed tree into it, and
# runs
# `./run VERB` for each verb: as root, then in a second root as a user with sudo, and each once more without network.
# Prints the times and PASS. Needs root, mmdebstrap, and about 4 GiB under TMPDIR.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. tools/lib.sh
[ $# -gt 0 ] || set -- mnist test

[ "$(id -u)" = 0 ] || exec sudo -- "$0" "$@"
if [ -z "${LEVIN_IN_NAMESPACE:-}" ]; then # the mounts below disappear with this namespace
  need mmdebstrap git
  LEVIN_IN_NAMESPACE=1 exec unshare --mount -- "$0" "$@"
fi

dir=$(mktemp -d "${TMPDIR:-/tmp}/levin-root.XXXXXX")
trap 'umount -R "$dir"/*/proc "$dir"/*/dev 2>/dev/null || true; rm -rf --one-file-system "$dir"' EXIT

. tools/fresh_root_lib.sh

# timed WHAT COMMAND...: prints the time until the program's own first line, the total time, and the last line.
timed() {
  local what=$1 log=$dir/log begin status=0 first
  shift
  begin=$(date +%s.%N)
  "$@" 2>"$dir/err" | while IFS= read -r line; do
    [ -s "$dir/first" ] || date +%s.%N >"$dir/first"
    printf '%s\n' "$line"
  done >"$log" || status=$?
  first=$(cat "$dir/first" 2>/dev/null || date +%s.%N)
  rm -f "$dir/first"
  awk -v b="$begin" -v f="$first" -v e="$(date +%s.%N)" -v w="$what" \
    'BEGIN { printf "%-34s first line after %6.1f s, done after %6.1f s: ", w, f - b, e - b }'
  tail -n 1 "$log"
  if [ "$status" != 0 ]; then
    tail -n 40 "$dir/err" "$log"
    echo "FAIL: $what exited with status $status"
    exit 1
  fi
}

try_as() {
  local user=$1 root=$dir/$1 home verb
  shift
  cp -a "$dir/base" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  if [ "$user" = root ]; then home=/root; else home=/home/$user; fi
  git -c safe.directory="$PWD" clone --quiet --bare . "$root$home/levin.git"
  chroot "$root" chown -R "$user:$user" "$home/levin.git"
  enter "$root" "$user" . git clone --quiet levin.git levin
  for verb in "$@"; do timed "as $user: ./run $verb" enter "$root" "$user" levin ./run "$verb"; done
  for verb in "$@"; do OFFLINE=1 timed "as $user, no network: ./run $verb" enter "$root" "$user" levin ./run "$verb"; done
  umount -R "$root/proc" "$root/dev"
  rm -rf --one-file-system "$root"
}

say "making a minimal root"
make_root "$dir/base"
try_as root "$@"
try_as dev "$@"
echo PASS
