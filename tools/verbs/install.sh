# ./run install [--prefix DIR] [--static] [--uninstall | --deb]: builds the libraries and installs them with their
# headers, for find_package(levin) and pkg-config. The default prefix is /usr/local for root and $HOME/.local for other
# users. --static: the libraries of LEVIN_STATIC. --uninstall: removes what was installed there. --deb: makes a Debian
# package instead.
set -euo pipefail
. tools/lib.sh
preset=release prefix= deb=0 uninstall=0
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) [ $# -gt 1 ] || usage_error "--prefix needs a folder"; prefix=$2; shift ;;
    --prefix=*) prefix=${1#*=} ;;
    --static) preset=static ;;
    --deb) deb=1 ;;
    --uninstall) uninstall=1 ;;
    -h | --help)
      echo "usage: ./run install [--prefix DIR] [--static] [--uninstall | --deb]"
      exit 0 ;;
    *) usage_error "$1 is not an option of install; the options are --prefix DIR, --static, --uninstall and --deb" ;;
  esac
  shift
done
[ "$deb" = 0 ] || [ -z "$prefix" ] || usage_error "--deb takes no --prefix: a Debian package installs in /usr"
if [ -z "$prefix" ]; then
  prefix=/usr/local
  [ "$(id -u)" = 0 ] || prefix=$HOME/.local
fi
prefix=$(realpath -m "$prefix")
manifest=$prefix/share/levin/installed.txt

if [ "$uninstall" = 1 ]; then
  [ -f "$manifest" ] || fail "$manifest does not exist, so nothing was installed in $prefix by ./run install"
  cd "$prefix"
  mapfile -t folders < <(sed 's|/[^/]*$||' "$manifest" | grep levin | sort -ru) # the deepest first
  xargs -d '\n' rm -f -- <"$manifest"
  rmdir --ignore-fail-on-non-empty -- "${folders[@]}" 2>/dev/null || true
  echo "removed Levin from $prefix"
  exit
fi

if [ "$deb" = 0 ]; then
  mkdir -p "$prefix" 2>/dev/null && [ -w "$prefix" ] ||
    fail "the folder $prefix cannot be written; choose another by --prefix, or run as root"
fi
need $packages_build
build $preset levin_libraries
if [ "$deb" = 1 ]; then
  rm -f "build/$preset"/*.deb
  if ! (cd "build/$preset" && cpack -G DEB >cpack.log 2>&1); then
    tail -n 20 "build/$preset/cpack.log" >&2
    fail "cpack failed; its output is in build/$preset/cpack.log"
  fi
  package=$(ls "build/$preset"/*.deb)
  echo "made $package ($(du -h "$package" | cut -f 1)); install it by: apt-get install ./$package"
  exit
fi
log=build/$preset-install.log
cmake --install "build/$preset" --prefix "$prefix" >"$log" || fail "the installation failed; its output is in $log"
mkdir -p "${manifest%/*}"
{ sed "s|^$prefix/||" "build/$preset/install_manifest.txt"; echo; echo "share/levin/installed.txt"; } >"$manifest"
config=$(dirname "$(grep -m 1 'levin-config.cmake$' "$manifest")")
pkgconfig=$prefix/$(dirname "$(grep -m 1 'levin.pc$' "$manifest")")
size=$(cd "$prefix" && grep '\.a$' "$manifest" | xargs du -ch | tail -n 1 | cut -f 1)
echo "installed Levin in $prefix: $config, $size of libraries"
case $prefix in
  /usr | /usr/local) ;;
  *) echo "tell programs where: cmake -DCMAKE_PREFIX_PATH=$prefix, and PKG_CONFIG_PATH=$pkgconfig for pkg-config" ;;
esac
echo "remove it by: ./run install --uninstall --prefix $prefix"
