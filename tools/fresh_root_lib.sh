# Sourced by the scripts that try Levin in a minimal Debian root.

# make_root FOLDER: a minimal Debian 12 with git, sudo and the user dev, from this machine's package sources.
make_root() {
  local root=$1 sources=() file
  for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    if [ -s "$file" ]; then sources=("$file"); break; fi
  done
  mmdebstrap --quiet --variant=minbase --include=git,sudo,ca-certificates bookworm "$root" "${sources[@]}"
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  apt-config dump | { grep -i '^Acquire::.*proxy' || true; } >"$root/etc/apt/apt.conf.d/99proxy"
  chroot "$root" useradd --create-home --shell /bin/bash dev
  echo 'dev ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/dev"
}

# enter ROOT USER FOLDER COMMAND...: runs a command in a folder of that root, which is relative to the user's home;
# OFFLINE=1 disables the network.
enter() {
  local root=$1 user=$2 home=/root cut=()
  shift 2
  if [ "$user" != root ]; then home=/home/$user; fi
  if [ -n "${OFFLINE:-}" ]; then cut=(unshare --net); fi
  "${cut[@]}" chroot --userspec="$user:$user" "$root" /usr/bin/env -i HOME="$home" USER="$user" \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    bash -c 'cd && cd "$0" && exec env "$@"' "$@"
}
