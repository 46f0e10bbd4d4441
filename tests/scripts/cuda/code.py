"""code.py BUILD CUOBJDUMP: reads what ptxas said of each kernel (cmake/ptxas_report.sh keeps it beside the objects)
and the machine code of the shipped ones. Ends with 1, a line for each fault, where a kernel spills registers or lacks
the instructions that it lives by."""

import multiprocessing
import pathlib
import re
import subprocess
import sys

ARCHITECTURES = ("sm_80", "sm_90a")
UNITS = ("sgemm", "hgemm", "matmul", "conv", "attention")

# The shipped rungs of GEMM, convolution and attention: part of the kernel's name, and what its code must contain.
HALF_PRODUCT, TF32_PRODUCT = r"HMMA\.16816\.F32", r"HMMA\.1688\.F32\.TF32"
ASYNC_COPY, MATRIX_LOAD = r"LDGSTS", r"LDSM"
SHIPPED = [
    ("sgemm_async_stages", [ASYNC_COPY]),
    ("hgemm_persistent", [HALF_PRODUCT, ASYNC_COPY, MATRIX_LOAD]),
    ("hgemm_any_operand", [HALF_PRODUCT, MATRIX_LOAD]),
    ("flash_forward_float", []),
    ("flash_keys_float", []),
    ("flash_queries_float", []),
    ("flash_forward_half", [HALF_PRODUCT, MATRIX_LOAD]),
    ("flash_keys_half", [HALF_PRODUCT, MATRIX_LOAD]),
    ("flash_queries_half", [HALF_PRODUCT, MATRIX_LOAD]),
]
# Kernels for any warp multiply carry its type in their mangled name.
TF32_WARPS = "Tf32"


def spills(report):
    """(kernel, architecture, bytes stored, bytes loaded) of each kernel in a report of ptxas -v."""
    kernel = architecture = None
    for line in report.read_text(errors="replace").splitlines():
        if match := re.search(r"Compiling entry function '(\S+)' for '(\S+)'", line):
            kernel, architecture = match.groups()
        elif (match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)) and kernel:
            yield kernel, architecture, int(match[1]), int(match[2])
            kernel = None


def code_of(cuobjdump, unit):
    """{(kernel, architecture): machine code} of an object."""
    text = subprocess.run([cuobjdump, "-sass", unit], check=True, capture_output=True, text=True).stdout
    code, architecture, kernel = {}, None, None
    for line in text.splitlines():
        if match := re.match(r"\s*arch = (\S+)", line):
            architecture, kernel = match[1], None
        elif match := re.match(r"\s*Function : (\S+)", line):
            kernel = match[1]
            code[kernel, architecture] = []
        elif kernel:
            code[kernel, architecture].append(line)
    return {key: "\n".join(lines) for key, lines in code.items()}


def needs(kernel):
    for name, instructions in SHIPPED:
        if re.search(rf"\d{name}I", kernel):
            return instructions + ([TF32_PRODUCT] if TF32_WARPS in kernel else [])
    return None


def look_at(place):
    """(kernels with their architectures, faults, instructions looked for) of an object."""
    cuobjdump, unit = place
    seen, faults, instructions = [], [], 0
    for kernel, architecture, stores, loads in spills(unit.with_name(unit.name + ".ptxas")):
        if needs(kernel) is None:
            continue
        seen.append((next(n for n, _ in SHIPPED if n in kernel), architecture))
        if stores or loads:
            faults.append(f"{unit.name}, {architecture}: {kernel} spills {stores} bytes, reads back {loads}")
    for (kernel, architecture), code in code_of(cuobjdump, unit).items():
        for instruction in needs(kernel) or []:
            instructions += 1
            if not re.search(instruction, code):
                faults.append(f"{unit.name}, {architecture}: {kernel} has no {instruction}")
    return seen, faults, instructions


def main():
    build, cuobjdump = sys.argv[1:]
    units = [u for name in UNITS for u in sorted(pathlib.Path(build).glob(f"**/kernels/cuda/{name}/**/*.cu.o"))]
    with multiprocessing.Pool() as pool:
        looks = pool.map(look_at, [(cuobjdump, unit) for unit in units], chunksize=1)
    seen = {pair for look in looks for pair in look[0]}
    faults = [fault for look in looks for fault in look[1]]
    instructions = sum(look[2] for look in looks)
    for name, _ in SHIPPED:
        if missing := {a for a in ARCHITECTURES if (name, a) not in seen}:
            faults.append(f"{name}: ptxas said nothing of it for {', '.join(sorted(missing))}")
    print(*faults, sep="\n")
    print(f"{len(units)} objects read, {instructions} instructions looked for, {len(faults)} faults")
    sys.exit(1 if faults or not instructions else 0)


main()
