# Checks nvcc's code of the shipped kernels: no spilled registers, tensor-core instructions in rungs that rely on them,
# and registers and shared memory that a device has for every launch of the tests.
. tests/scripts/lib.sh
tools=build/tools/venv
tool() { PATH=$PATH:/usr/local/cuda/bin command -v "$1" || find "$tools" -name "$1" -type f 2>/dev/null | head -n 1; }
if [ -z "$(tool cuobjdump)" ] || [ -z "$(tool nvdisasm)" ]; then # smaller installations of the toolkit leave them out
  [ -x "$tools/bin/python" ] || python3 -m venv "$tools"
  "$tools/bin/python" -m pip install --quiet "nvidia-cuda-cuobjdump==13.*" "nvidia-cuda-nvdisasm==13.*" ||
    fail "pip could not install cuobjdump and nvdisasm"
  chmod +x "$(tool cuobjdump)" "$(tool nvdisasm)"
fi
# The launches of the emulated tests. Only the preset release, which ./run test builds, writes this list.
launches=build/launches.tsv
[ -s "$launches" ] || bash tools/verbs/test.sh --preset release cuda || fail "the emulated tests failed"
PATH=$PATH:$(dirname "$(tool nvdisasm)") python3 tests/scripts/cuda/code.py "$build" "$(tool cuobjdump)" "$launches"
