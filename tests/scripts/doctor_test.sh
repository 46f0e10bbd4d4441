# levin-doctor, as installed, prints each of its sections, and its status is 0.
. tests/scripts/lib.sh
install_to_stage
text=$("$stage/bin/levin-doctor")
echo "$text"
for part in "Machine and build" "SIMD target" " cores, LEVIN_THREADS=" "GPU" "Features" "several processes" "Fashion-MNIST" \
  "Speed in one second" "GFLOP/s" "GB/s" "images/s"; do
  grep -qF "$part" <<<"$text" || fail "levin-doctor does not print \"$part\""
done
! grep -E ' (0\.0|inf|nan|-[0-9]\S*) ' <<<"$text" || fail "levin-doctor printed a speed that cannot be"

# LEVIN_CPU_CAPABILITY limits the instruction sets, unless the build has kernels for one alone.
text=$(LEVIN_THREADS=1 LEVIN_CPU_CAPABILITY=sse4 "$stage/bin/levin-doctor" 2>&1) && refused=0 || refused=1
if grep -q '#define LEVIN_SIMD "\(all\|SSE4\)"' "$build/generated/include/levin/core/simd_build.h"; then
  [[ $refused = 0 && $text =~ SIMD\ target\ +SSE4 ]] || fail "LEVIN_CPU_CAPABILITY=sse4 has no effect: $text"
else
  [[ $refused = 1 && $text == *'LEVIN_CPU_CAPABILITY is "sse4", but this build has kernels for '* ]] || fail "it says: $text"
fi
text=$(LEVIN_CPU_CAPABILITY=avx "$stage/bin/levin-doctor" 2>&1) && fail "LEVIN_CPU_CAPABILITY=avx is accepted"
grep -qF 'LEVIN_CPU_CAPABILITY is "avx"; give sse4, avx2, avx512 or amx, or unset it.' <<<"$text" || fail "it says: $text"
