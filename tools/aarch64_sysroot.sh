# Unpacks the arm64 libraries that preset aarch64 links to build/aarch64-sysroot. apt keeps its lists and its state in a
# folder of its own, so neither the packages nor the architectures of this machine change, and no root is needed.
set -euo pipefail
. tools/lib.sh
sysroot=build/aarch64-sysroot
packages="libhwy-dev libeigen3-dev libfmt-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev libcli11-dev nlohmann-json3-dev
  libspdlog-dev libgloo-dev doctest-dev"
[ "$(cat "$sysroot/packages" 2>/dev/null)" != "$packages" ] || exit 0
command -v apt-get >/dev/null || fail "preset aarch64 takes its libraries from Debian's archive, and apt-get is missing"

work=$PWD/$sysroot.part
rm -rf "$work"
mkdir -p "$work"/{lists/partial,archives/partial,debs,root}
touch "$work/status"
cat >"$work/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Dir::State::Lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work";
END
export APT_CONFIG=$work/apt.conf
say "downloading arm64 libraries to $sysroot"
apt-get -q update >"$work/log" 2>&1 || true # a source without arm64 is an error; the download shows whether it matters
# The libraries of a development package are among its dependencies; those of the compiler are not needed.
libraries=$(apt-cache depends --no-recommends --no-suggests $packages 2>>"$work/log" |
  sed -n 's/^  Depends: \(lib[^<]*\)$/\1/p' | grep -v '^libc6' | sort -u)
if [ -z "$libraries" ] || ! (cd "$work/debs" && apt-get -q download $packages $libraries >>"$work/log" 2>&1); then
  tail -n 5 "$work/log" >&2
  fail "the arm64 packages could not be downloaded (apt's last output is above). Check the network and the package sources."
fi
for deb in "$work"/debs/*.deb; do dpkg-deb --extract "$deb" "$work/root"; done
echo "$packages" >"$work/root/packages"
rm -rf "$sysroot"
mv "$work/root" "$sysroot"
rm -rf "$work"
