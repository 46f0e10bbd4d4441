# A network that examples/deploy trained and wrote runs in examples/classifier, which contains no training code: with int8
# weights its file is about a quarter as large and it is about as accurate. Broken files are refused in one sentence.
. tests/scripts/lib.sh
ninja -C "$build" deploy classifier >/dev/null
work=$build/deploy_test
rm -rf "$work"

trained=$("$build/bin/deploy" --from none --out "$work" --default-root-dir "$work/training" --max-epochs 1 \
  --limit-train-batches 120 --limit-val-batches 0 --num-sanity-val-steps 0 2>"$work.log") || fail "$(cat "$work.log")"
ran=$("$build/bin/classifier" "$work")
echo "$trained" | tail -n 3
echo "$ran"
value() { grep -o "$2=[0-9.]*" <<<"$1" | tail -n 1 | cut -d = -f 2; }
floats=$(value "$trained" float32_bytes) bytes=$(value "$trained" int8_bytes)
[ "$bytes" -gt $((floats / 5)) ] && [ "$bytes" -lt $((floats * 29 / 100)) ] || fail "int8 takes $bytes bytes of $floats"
exact=$(value "$ran" float32_accuracy)
awk "BEGIN { exit !($exact > 0.6) }" || fail "float32 has an accuracy of $exact"
for mode in weight_only dynamic onnx; do
  accuracy=$(value "$ran" ${mode}_accuracy)
  awk "BEGIN { d = $accuracy - $exact; exit !(d < 0.01 && d > -0.01) }" || fail "$mode: $accuracy, float32: $exact"
done

symbols=$(nm -C "$build/bin/classifier" | grep -c 'levin::optim::\|levin::Trainer' || true)
[ "$symbols" = 0 ] || fail "the program for inference contains $symbols symbols of optimizers or the Trainer"

cp "$work/model.safetensors" "$work/model.int8.safetensors"
error=$("$build/bin/classifier" "$work" 2>&1) && fail "float32 weights were taken for int8"
grep -q 'is int8 here and float32 there' <<<"$error" || fail "float32 weights for int8: $error"
head -c 1000 "$work/model.safetensors" >"$work/model.int8.safetensors"
error=$("$build/bin/classifier" "$work" 2>&1) && fail "a file that is cut off was taken"
grep -q 'error: \[safetensors\].*model.int8.safetensors' <<<"$error" || fail "a file that is cut off: $error"
