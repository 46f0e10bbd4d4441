# A shared object that contains Levin can be unloaded after it has computed, a program with OpenMP threads of its own
# calls Levin, and the other kinds of threads work. With LEVIN_FULL: programs with clang++'s OpenMP, beside Levin's
# threads and beside g++'s OpenMP.
. tests/scripts/lib.sh
install_to_stage
work=$build/threads
mkdir -p "$work"

g++ -O0 -fPIC -shared $(pkg-config --cflags levin) tests/consumer/plugin.cpp $(pkg-config --libs levin) \
  -Wl,--exclude-libs,ALL -o "$work/plugin.so"
g++ -O0 -Wall -Wextra tests/consumer/plugin_host.cpp -o "$work/plugin_host"
"$work/plugin_host" "$work/plugin.so" || fail "a plugin could not be unloaded"

host() { # host NAME COMPILER [ARGUMENT...]
  local program=$work/$1 compiler=$2
  shift 2
  "$compiler" -O1 -fopenmp $(pkg-config --cflags levin) tests/consumer/openmp_host.cpp "$@" $(pkg-config --libs levin) \
    -o "$program"
  "$program" >"$program.txt" 2>&1 || fail "$program: $(tail -n 3 "$program.txt")"
  grep '^openmp: ok, ' "$program.txt" || fail "$program: $(tail -n 3 "$program.txt")"
}
loaded() { readelf -d "$work/$1" | grep -o 'lib[gi]*omp[0-9]*\.so[.0-9]*' | sort | tr '\n' ' '; }
host openmp g++

# The number of threads on one core, by default and with OMP_NUM_THREADS.
first_core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
number() { taskset -c "$first_core" env -u OMP_NUM_THREADS "$@" "$work/openmp" | sed -n 's/^threads: //p'; }
while read -r setting wanted; do
  [ "$(number "$setting")" = "$wanted" ] || fail "with $setting there are $(number "$setting") threads instead of $wanted"
done <<'TABLE'
NOTHING= 1
OMP_NUM_THREADS=5 5
OMP_NUM_THREADS=5,2 5
OMP_NUM_THREADS=0 1
OMP_NUM_THREADS=many 1
TABLE
[ "$(loaded openmp)" = "libgomp.so.1 " ] || fail "the program loads $(loaded openmp)"

# The other kinds of threads, by the tests that hold for all.
ninja -C "$build" levin_test_support levin_test_main >/dev/null
for kind in SERIAL OPENMP; do
  for source in core/src/parallel.cpp tests/core/parallel_test.cpp; do
    g++ -O0 -std=c++20 -fopenmp -DLEVIN_$kind=1 -Icore/include -I"$build/generated/include" -c "$source" \
      -o "$work/$(basename "$source" .cpp)_$kind.o"
  done
  g++ -fopenmp "$work"/parallel_{,test_}$kind.o "$build/tests/CMakeFiles/levin_test_main.dir/support/main.cpp.o" \
    "$build/tests/liblevin_test_support.a" $(pkg-config --libs levin) -Wl,-z,muldefs -o "$work/parallel_$kind"
  "$work/parallel_$kind" >"$work/$kind.txt" || fail "LEVIN_THREADS=${kind,,}: $(tail -n 20 "$work/$kind.txt")"
  tail -n 3 "$work/$kind.txt"
done
[ -n "${LEVIN_FULL:-}" ] || exit 0
host libomp clang++-16
[[ "$(loaded libomp)" != *gomp* ]] || fail "the program loads $(loaded libomp)"

# Which omp_get_num_threads() this program calls depends on the order of the libraries.
host two_runtimes clang++-16 "$work/parallel_OPENMP.o" -Wl,-z,muldefs -lgomp
[[ "$(loaded two_runtimes)" == *gomp*libomp* ]] || fail "the program loads $(loaded two_runtimes)"
