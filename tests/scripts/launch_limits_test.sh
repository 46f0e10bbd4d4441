# Runs tests/scripts/cuda/code.py on planted reports of ptxas: a kernel with more registers or shared memory than any
# device has for the tests' launches is a fault; one at the limit is not.
. tests/scripts/lib.sh
work=$build/launch_limits_test
rm -rf "$work"
mkdir -p "$work/kernels/cuda/norm"
python3 - "$work" <<'PYTHON'
import pathlib, sys
sys.argv[1:], folder = [sys.argv[1], "none"], pathlib.Path(sys.argv[1])
source = pathlib.Path("tests/scripts/cuda/code.py").read_text().rsplit("\nmain()", 1)[0]
code = {}
exec(compile(source, "code.py", "exec"), code)

def report(kernels):
    """As ptxas -v of CUDA 13 writes it."""
    lines = []
    for kernel, architecture, registers, shared in kernels:
        lines += [f"ptxas info    : Compiling entry function '{kernel}' for '{architecture}'",
                  f"ptxas info    : Function properties for {kernel}",
                  "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
                  f"ptxas info    : Used {registers} registers, used 1 barriers{f', {shared} bytes smem' if shared else ''}",
                  "ptxas info    : Compile time = 1.428 ms"]
    return "\n".join(lines) + "\n"

def faults(registers, shared, threads, dynamic, architecture="sm_90a", launched="_Z1av"):
    (folder / "kernels/cuda/norm/a.cu.o.ptxas").write_text(report([("_Z1av", architecture, registers, shared)]))
    (folder / "launches.tsv").write_text(f"{launched}\t32\t0\t0\n{launched}\t{threads}\t{dynamic}\t{shared}\n")
    return code["check_launches"](folder, code["read_launches"](folder / "launches.tsv"))[1]

KIB = 1024
assert faults(64, 0, 1024, 0) == []
assert faults(65, 0, 1024, 0) == ["sm_90a: _Z1av uses 65 registers, for 1024 threads 73728 of 65536"]
assert faults(65, 0, 1024, 0, "sm_80") == ["sm_80: _Z1av uses 65 registers, for 1024 threads 73728 of 65536"]
assert faults(255, 0, 256, 0) == [] and len(faults(255, 0, 257, 0)) == 1
assert faults(168, 0, 384, 0) == [] and len(faults(169, 0, 384, 0)) == 1
assert faults(32, 17 * KIB, 128, 31 * KIB) == []
assert faults(32, 18 * KIB, 128, 31 * KIB) == [
    "sm_90a: _Z1av has 18432 bytes of arrays and 31744 of dynamic shared memory, of 49152"]
assert faults(32, 1 * KIB, 128, 48 * KIB) == [], "it asks for more from 32 KiB on"
assert faults(32, 1 * KIB, 128, 226 * KIB) == [] and len(faults(32, 2 * KIB, 128, 226 * KIB)) == 1
assert faults(32, 1 * KIB, 128, 226 * KIB, "sm_80") == [], "launched for another architecture"
assert faults(32, 0, 32, 0, launched="_Z1bv") == [
    "none of the 1 launched kernels is one of the 1 that ptxas compiled"]
# The launch has the same limit.
launch = pathlib.Path("kernels/cuda/base/launch.cu").read_text()
assert f"kAskForShared = {code['ASK_FOR_SHARED'] // KIB} * 1024" in launch
PYTHON
rm -rf "$work"
