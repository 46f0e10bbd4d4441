"""code.py BUILD CUOBJDUMP [LAUNCHES]: reads what ptxas said of each kernel (cmake/ptxas_report.sh keeps it beside the
objects) and the machine code of the shipped ones. Ends with 1, a line for each fault, where a shipped kernel spills
registers or lacks the instructions that it lives by, and where a kernel cannot be launched as the tests launch it:
LAUNCHES is the list that the emulator wrote of them (LEVIN_EMULATOR_LAUNCHES), on a device of compute capability 9.0.
Its registers times the threads of a block, and its arrays with the dynamic shared memory, must fit the architecture."""

import multiprocessing
import pathlib
import re
import subprocess
import sys

UNITS = ("sgemm", "hgemm", "matmul", "conv", "attention")

# Of a block (CUDA C++ Programming Guide, technical specifications): registers, and bytes of shared memory for a kernel
# that asks for more than the usual. Launches ask for it from kAskForShared on (kernels/cuda/base/launch.cu).
REGISTERS = 64 * 1024
SHARED = {"sm_80": 163 * 1024, "sm_90a": 227 * 1024}
USUAL_SHARED, ASK_FOR_SHARED = 48 * 1024, 32 * 1024
LAUNCHED_ON = "sm_90a"

# The shipped rungs of GEMM, convolution and attention: part of the kernel's name, and what its code must contain.
HALF_PRODUCT, TF32_PRODUCT = r"HMMA\.16816\.F32", r"HMMA\.1688\.F32\.TF32"
ASYNC_COPY, MATRIX_LOAD, GROUP_PRODUCT = r"LDGSTS", r"LDSM", r"HGMMA\.64x(128|256)x16\.F32"
BOX_COPY, ATTENTION_PRODUCT = r"UTMALDG", r"HGMMA\.64x(64|128)x16\.F32"
SHIPPED = [
    ("sgemm_async_stages", [ASYNC_COPY]),
    ("hgemm_persistent", [HALF_PRODUCT, ASYNC_COPY, MATRIX_LOAD]),
    ("hgemm_any_operand", [HALF_PRODUCT, MATRIX_LOAD]),
    ("hgemm_copy_engine", [GROUP_PRODUCT, BOX_COPY]),
    ("conv_channels_last", [HALF_PRODUCT, ASYNC_COPY, MATRIX_LOAD]),
    ("conv_tap_major", [ASYNC_COPY]),
    ("conv_halo", [HALF_PRODUCT, ASYNC_COPY, MATRIX_LOAD]),
    ("flash_forward_float", []),
    ("flash_keys_float", []),
    ("flash_queries_float", []),
    ("flash_forward_half", [HALF_PRODUCT, MATRIX_LOAD]),
    ("flash_keys_half", [HALF_PRODUCT, MATRIX_LOAD]),
    ("flash_queries_half", [HALF_PRODUCT, MATRIX_LOAD]),
    ("flash_forward_warpgroups", [ATTENTION_PRODUCT]),
    ("flash_queries_warpgroups", [ATTENTION_PRODUCT]),
]
# A rung that does not ship. It is checked where the ladders are compiled.
LADDER = [("hgemm_warpgroups", [GROUP_PRODUCT, ASYNC_COPY])]
# Rungs that only this architecture runs; for others they are compiled without their instructions.
ONLY_SM_90A = ("hgemm_warpgroups", "hgemm_copy_engine", "flash_forward_warpgroups", "flash_queries_warpgroups")
# ptxas 13.0 writes both predicates of a clamped minimum to one register, and branches on the wrong one.
BROKEN_BRANCH = r"VIMNMX\S* R\d+, P(\d), P\1,"
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


def resources(report):
    """{(kernel, architecture): (registers a thread, bytes of arrays in shared memory)} of a report of ptxas -v."""
    found, key = {}, None
    for line in report.read_text(errors="replace").splitlines():
        if match := re.search(r"Compiling entry function '(\S+)' for '(\S+)'", line):
            key = match.groups()
        elif (match := re.search(r"Used (\d+) registers", line)) and key:
            shared = re.search(r"(\d+) bytes smem", line)
            found[key] = int(match[1]), int(shared[1]) if shared else 0
            key = None
    return found


def read_launches(file):
    """{kernel: (most threads of a block, most bytes of dynamic shared memory)}"""
    most = {}
    for line in file.read_text().splitlines():
        kernel, threads, dynamic, _ = line.split("\t")
        before = most.get(kernel, (0, 0))
        most[kernel] = max(before[0], int(threads)), max(before[1], int(dynamic))
    return most


def registers_of_block(registers, threads):
    """Registers are given to warps, 256 at a time."""
    return -(-threads // 32) * (-(-registers * 32 // 256) * 256)


def launch_faults(kernel, architecture, used, launched):
    """Returns why the architecture refuses a launch of the kernel, if it does."""
    (registers, arrays), (threads, dynamic) = used, launched
    where, faults = f"{architecture}: {kernel}", []
    if (wanted := registers_of_block(registers, threads)) > REGISTERS:
        faults.append(f"{where} uses {registers} registers, for {threads} threads {wanted} of {REGISTERS}")
    if architecture != LAUNCHED_ON:  # for others the launchers may choose other sizes
        return faults
    most = SHARED[architecture] if dynamic >= ASK_FOR_SHARED else USUAL_SHARED
    if arrays + dynamic > most:
        faults.append(f"{where} has {arrays} bytes of arrays and {dynamic} of dynamic shared memory, of {most}")
    return faults


def check_launches(build, launches):
    """(kernels that were launched, faults)"""
    reports = pathlib.Path(build).glob("**/kernels/cuda/**/*.ptxas")
    used = {key: value for report in reports for key, value in resources(report).items()}
    seen = {kernel for kernel, _ in used if kernel in launches}
    faults = [fault for (kernel, architecture), value in sorted(used.items()) if kernel in launches
              for fault in launch_faults(kernel, architecture, value, launches[kernel])]
    if not seen:
        faults.append(f"none of the {len(launches)} launched kernels is one of the {len(used)} that ptxas compiled")
    return len(seen), faults


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


def needs(kernel, architecture):
    for name, instructions in SHIPPED + LADDER:
        if name in ONLY_SM_90A and architecture != LAUNCHED_ON:
            continue
        if re.search(rf"\d{name}I", kernel):
            return instructions + ([TF32_PRODUCT] if TF32_WARPS in kernel else [])
    return None


def look_at(place):
    """(kernels with their architectures, faults, instructions looked for) of an object."""
    cuobjdump, unit = place
    seen, faults, instructions = [], [], 0
    for kernel, architecture, stores, loads in spills(unit.with_name(unit.name + ".ptxas")):
        if needs(kernel, architecture) is None:
            continue
        seen.append((next(n for n, _ in SHIPPED + LADDER if n in kernel), architecture))
        if stores or loads:
            faults.append(f"{unit.name}, {architecture}: {kernel} spills {stores} bytes, reads back {loads}")
    report = unit.with_name(unit.name + ".ptxas").read_text(errors="replace")
    for number in sorted(set(re.findall(r"\(C75\d\d\)", report))):
        faults.append(f"{unit.name}: ptxas waits for products of warpgroups or serialises them {number}")
    for (kernel, architecture), code in code_of(cuobjdump, unit).items():
        if re.search(BROKEN_BRANCH, code):
            faults.append(f"{unit.name}, {architecture}: {kernel} branches on a clamped minimum's bit")
        for instruction in needs(kernel, architecture) or []:
            instructions += 1
            if not re.search(instruction, code):
                faults.append(f"{unit.name}, {architecture}: {kernel} has no {instruction}")
    return seen, faults, instructions


def architectures(build):
    """Returns the architectures that the build folder compiles for."""
    cache = pathlib.Path(build, "CMakeCache.txt").read_text()
    return ("sm_90a",) if "LEVIN_CUDA_CODE:STRING=sm_90a" in cache else ("sm_80", "sm_90a")


def main():
    build, cuobjdump, *launches = sys.argv[1:]
    units = [u for name in UNITS for u in sorted(pathlib.Path(build).glob(f"**/kernels/cuda/{name}/**/*.cu.o"))]
    with multiprocessing.Pool() as pool:
        looks = pool.map(look_at, [(cuobjdump, unit) for unit in units], chunksize=1)
    seen = {pair for look in looks for pair in look[0]}
    faults = [fault for look in looks for fault in look[1]]
    instructions = sum(look[2] for look in looks)
    for name, _ in SHIPPED:
        if missing := {a for a in architectures(build)
                       if (name, a) not in seen and (a == LAUNCHED_ON or name not in ONLY_SM_90A)}:
            faults.append(f"{name}: ptxas said nothing of it for {', '.join(sorted(missing))}")
    launched = 0
    if launches:
        launched, more = check_launches(build, read_launches(pathlib.Path(launches[0])))
        faults += more
    print(*faults, sep="\n")
    print(f"{len(units)} objects read, {instructions} instructions looked for, {launched} kernels with their launches, "
          f"{len(faults)} faults")
    sys.exit(1 if faults or not instructions else 0)


main()
