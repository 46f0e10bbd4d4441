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
