# The lines that docs/adding_an_operation.md gives for a new row are all that it needs: added to a copy of the files, they
# make an operation whose value and derivatives are right on the CPU and, in the emulator, on CUDA.
. tests/scripts/lib.sh
ninja -C "$build" levin_kernels_emulated >/dev/null
work=$build/add_operation_test
rm -rf "$work"
mkdir -p "$work"

python3 - "$work" <<'PYTHON'
import pathlib, re, sys
work = pathlib.Path(sys.argv[1])
page = pathlib.Path("docs/adding_an_operation.md").read_text()
lines = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$", page, re.MULTILINE)
assert len(lines) == 4, lines
for name, after, line in lines:
    text = pathlib.Path(name).read_text()
    assert text.count(after + "\n") == 1 and line not in text, f"{name}: {after}"
    copy = work / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(text.replace(after + "\n", after + "\n" + line + "\n"))
PYTHON

cat > "$work/main.cpp" <<'CPP'
#include <levin/autograd/autograd.h>
#include <levin/levin.h>

#include <cmath>
#include <cstdio>

int main() {
  using namespace levin;
  const Tensor x = tensor<double>({-2.5, -0.25, 0.5, 1.5});
  double worst = 0;
  for (const DeviceType type : {DeviceType::cpu, DeviceType::cuda}) {
    const Tensor y = cbrt(x.to(Device{type, 0})).to(kCpu);
    for (int64_t i = 0; i < 4; ++i)
      worst = std::max(worst, std::abs(y[i].item<double>() - std::cbrt(x[i].item<double>())));
  }
  const auto function = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{cbrt(in[0])}; };
  const std::string fault = gradgradcheck(function, {x.clone().requires_grad_()});
  std::printf("error %g, derivatives: %s\n", worst, fault.empty() ? "right" : fault.c_str());
  return worst < 1e-15 && fault.empty() ? 0 : 1;
}
CPP

# The copies come first in every search for a header, and their objects first in the link.
includes=(-I"$work" -I"$work/kernels/include" -I"$work/autograd/include" -I. -Ikernels -I"$build/generated/include")
for module in core kernels autograd nn optim data interop distributed trainer; do includes+=(-I"$module/include"); done
compile() { g++ -std=c++20 -O1 -ffp-contract=off "${includes[@]}" "$@"; }
compile -c kernels/cpu/elementwise/unary.cpp -o "$work/cpu.o"
compile -c autograd/src/ops/elementwise/unary.cpp -o "$work/operation.o"
compile -x c++ -Iemulator/include -Iemulator/toolkit -DLEVIN_EMULATED=1 -Wno-unknown-pragmas \
  -c kernels/cuda/elementwise/unary.cu -o "$work/cuda.o"
compile "$work/main.cpp" "$work"/*.o -Wl,-z,muldefs \
  -Wl,--whole-archive "$build/liblevin_kernels_emulated.a" -Wl,--no-whole-archive \
  "$build/liblevin_tensor.a" "$build/emulator/liblevin_emulator.a" "$build/liblevin_tensor.a" \
  -lfmt -lz -o "$work/cbrt"
"$work/cbrt"
