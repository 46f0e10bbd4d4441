# A build shows its progress: one line rewritten in place in a terminal, a line every few seconds elsewhere. A failed
# build prints the compiler's messages once and names the log.
. tests/scripts/lib.sh
lib=$PWD/tools/lib.sh
work=$build/progress
rm -rf "$work"
mkdir -p "$work/build/fake"
cd "$work"
cat >build/fake/build.ninja <<'EOF'
pool one
  depth = 1
rule compile
  command = sleep 0.7; touch $out
  description = Building CXX object $out
  pool = one
rule refuse
  command = echo "x.cpp:3:1: error: expected ';'"; exit 1
  description = Building CXX object $out
build 1: compile
build 2: compile
build 3: compile
build 4: compile
build 5: compile
build 6: compile
build 7: compile
build 8: compile
build 9: compile
build good: phony 1 2 3 4 5 6 7 8 9
build x: refuse | 1
build broken: phony x
EOF
unset LEVIN_CMAKE_ARGS # the build below needs no CMake
echo "-DLEVIN_SIMD=all " >build/fake/cmake_args
builds() { bash -euc '. "$0"; build fake "$1"' "$lib" "$1"; } # without pipefail, as .ci/run sources it

# Output to a file has a line every five seconds and one at the end, without control characters.
builds good 2>plain
grep -qE '^==> building good in build/fake: [678] of 9 files, [123] left, 0:0[56]$' plain || fail "no progress: $(cat plain)"
grep -qE '^==> built good in build/fake: 9 files, 0:[01][0-9]$' plain || fail "no end: $(cat plain)"
[ "$(wc -l <plain)" -le 3 ] || fail "too many lines: $(cat plain)"
! grep -q $'[\r\033]' plain || fail "control characters in a file"
[ "$(grep -c '^\[[1-9]/9\] Building' build/fake.log)" = 9 ] || fail "the log lacks ninja's lines: $(cat build/fake.log)"
builds good 2>again
[ ! -s again ] || fail "a build with nothing to do said: $(cat again)"

# In a terminal every state is written to the same line, cut to the terminal's width; the last line stays.
rm -f [1-9]* build/fake/[1-9]
script -qec "stty cols 44; bash -euc '. \"\$0\"; build fake good' '$lib'" typed >/dev/null
[ "$(grep -c 'built good in build/fake: 9 files' typed)" = 1 ] || fail "terminal: no end: $(cat -v typed)"
for done in 1 5 8; do
  grep -q $'\r\033'"\[K==> building good in build/fake: $done of" typed ||
    fail "terminal: $done of 9 is missing: $(cat -v typed)"
done
[ "$(tr '\r' '\n' <typed | sed $'s/\033\\[K//' | grep '^==> building' | awk '{ print length }' | sort -n | tail -n 1)" -le 43 ] ||
  fail "terminal: a line is wider than 43 columns: $(cat -v typed)"
[ "$(grep -c '==> ' typed)" -le 2 ] || fail "terminal: the line is not rewritten in place: $(cat -v typed)"

# A failure: status 1, the messages once, no command, the log's path.
status=0
builds broken 2>failed || status=$?
[ "$status" = 1 ] || fail "a failed build ended with $status"
[ "$(grep -c "error: expected ';'" failed)" = 1 ] || fail "the message is not there once: $(cat failed)"
! grep -q 'exit 1' failed || fail "the compiler's command is printed: $(cat failed)"
[ "$(grep -c '^==> building broken in build/fake: failed after ' failed)" = 1 ] || fail "no failed line: $(cat failed)"
[ "$(tail -n 1 failed)" = "error: the build of broken failed (preset fake); the full output is in build/fake.log" ] ||
  fail "the log is not named: $(cat failed)"
grep -q 'exit 1' build/fake.log || fail "the log lacks the command"
