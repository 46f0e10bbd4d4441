# Programs of other projects exchange files and memory with Levin: each tests/clients/*.py that is not client.py, in a
# venv with those projects. `./run test clients` and `./run test --full` run it.
. tests/scripts/lib.sh
venv=build/peers/venv
clients=(tests/clients/*.py)

(. tools/lib.sh; need $packages_clients) || { echo "SKIP: network"; exit 0; }
(. tools/lib.sh; build "$preset" levin_clients) || fail "the build of the programs"
remove=true # a venv that is not complete is removed, since ./run compare uses it too
if [ -x "$venv/bin/python" ]; then remove=; else python3 -m venv "$venv"; fi
modules="numpy, onnx, onnxruntime, onnxscript, safetensors, torch"
if ! "$venv/bin/python" -c "import $modules" 2>/dev/null && ! "$venv/bin/pip" install --quiet ${modules//,/}; then
  [ -z "$remove" ] || rm -rf "$venv"
  echo "SKIP: network"
  exit 0
fi

ran=0
for client in "${clients[@]}"; do
  [ "$(basename "$client")" != client.py ] || continue
  start=$SECONDS
  "$venv/bin/python" "$client" "$build/bin" || fail "$client"
  echo "$client: $((SECONDS - start)) s"
  ran=$((ran + 1))
done
[ "$ran" -ge 4 ] || fail "only $ran clients were found"
