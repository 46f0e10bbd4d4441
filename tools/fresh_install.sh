#!/usr/bin/env bash
# tools/fresh_install.sh [--ccache DIR] [PATTERN]: follows docs/install.md word by word in a minimal Debian root. Its commands and
# files are run and compiled as the page shows them, as a user with sudo. Afterwards checks that the static program loads
# libc alone and that nothing is left of what was uninstalled. --ccache lends the root a compiler cache, which saves much
# of the half hour on two cores. Prints the log and PASS. Needs root, mmdebstrap, and
# about 5 GiB under TMPDIR. With a pattern only the sections whose titles match are followed.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. tools/lib.sh
arguments=("$@") cache=
if [ "${1:-}" = --ccache ]; then
  cache=$(realpath "$2")
  shift 2
fi
[ "$(id -u)" = 0 ] || exec sudo -- "$0" "${arguments[@]}"
if [ -z "${LEVIN_IN_NAMESPACE:-}" ]; then # the mounts below disappear with this namespace
  need mmdebstrap git python3
  LEVIN_IN_NAMESPACE=1 exec unshare --mount -- "$0" "${arguments[@]}"
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/levin-install.XXXXXX")
trap 'umount -R "$dir"/root/{proc,dev,ccache} 2>/dev/null || true; rm -rf --one-file-system "$dir"' EXIT
. tools/fresh_root_lib.sh
say "making a minimal root"
make_root "$dir/root"
mount -t proc proc "$dir/root/proc"
mount --rbind /dev "$dir/root/dev"
git -c safe.directory="$PWD" clone --quiet --no-hardlinks . "$dir/root/home/dev/levin-tree"
variables=()
if [ -n "$cache" ]; then
  mkdir "$dir/root/ccache"
  mount --bind -o ro "$cache" "$dir/root/ccache"
  variables=(CCACHE_DIR=/ccache CCACHE_READONLY=1 CCACHE_TEMPDIR=/tmp/ccache)
fi
python3 tools/page_script.py docs/install.md "${1:-}" >"$dir/root/home/dev/page.sh"
chroot "$dir/root" chown -R dev:dev /home/dev
log=$dir/log
if ! enter "$dir/root" dev levin-tree "${variables[@]}" bash /home/dev/page.sh >"$log" 2>&1; then
  tail -n 60 "$log"
  fail "a command of docs/install.md failed, see above"
fi
grep -E '^(\$|###)|levin|\.so' "$log"
libc='^(linux-vdso\.so\.1|lib[cm]\.so\.6|/lib64/ld-linux-x86-64\.so\.2)$'
loads=$(sed -n '/^\$ ldd /,/^###/ s/^\s*\(\S*\.so\S*\).*/\1/p' "$log")
[ -n "${1:-}" ] || grep -q '^libc\.so' <<<"$loads" || fail "the page does not show what the static program loads"
loads=$(grep -vE "$libc" <<<"$loads" || true)
[ -z "$loads" ] || fail "the static program loads" $loads
left=$(find "$dir"/root/home/dev/levin{,-static} ! -type d; find "$dir/root/usr" -name '*levin*') # folders may stay
[ -z "$left" ] || fail "after uninstalling there is still" $left
echo PASS
