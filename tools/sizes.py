"""Sizes, compile times and start times of programs that use Levin, beside LibTorch: what ./run sizes measures.

Usage: sizes.py [--update] SHARED_PREFIX STATIC_PREFIX [VENV]
The prefixes are installations of Levin; VENV is a Python environment with PyTorch. --update writes the table into
docs/install.md. All programs are compiled by g++ -O2; sizes are those of stripped programs, and what they load besides
libc and libm is counted separately."""

import os
import pathlib
import re
import resource
import subprocess
import sys
import time
from datetime import date

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build/sizes"
PAGE = ROOT / "docs/install.md"
PROGRAMS = {"minimal": "regression, `examples/minimal`", "lenet": "training of LeNet",
            "inference": "trained LeNet, one image"}  # which reads the weights that training wrote
LIBC = re.compile(r"lib(c|m)\.so|ld-linux|linux-vdso")


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def flags_of(prefix):
    """The compile and link flags of an installation, by pkg-config."""
    folder = next(prefix.rglob("levin.pc")).parent
    env = {**os.environ, "PKG_CONFIG_PATH": str(folder)}
    return [run(["pkg-config", option, "levin"], env=env).split() for option in ("--cflags", "--libs")]


def flags_of_torch(venv):
    torch = pathlib.Path(run([venv / "bin/python", "-c", "import torch, os; print(os.path.dirname(torch.__file__))"]).strip())
    return [["-std=c++20", f"-I{torch}/include", f"-I{torch}/include/torch/csrc/api/include"],
            [f"-L{torch}/lib", f"-Wl,-rpath,{torch}/lib", "-ltorch", "-ltorch_cpu", "-lc10"]]


def source_of(program, peer):
    if peer:
        return ROOT / f"bench/peers/libtorch_{program}.cpp"
    return ROOT / "examples/minimal/main.cpp" if program == "minimal" else ROOT / f"tests/consumer/{program}.cpp"


def cpu_seconds(command):
    """The user and system time of one run of a command, which other processes disturb less than the wall time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds(command, times):
    """The least wall time of several runs of a command: other processes can only delay it."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run(command)
        taken.append(time.perf_counter() - start)
    return min(taken)


def loaded(program):
    """The bytes of the shared libraries that a program loads, without libc and libm."""
    lines = re.findall(r"=> (\S+) \(", run(["ldd", program]))
    return sum(os.stat(os.path.realpath(file)).st_size for file in lines if not LIBC.search(os.path.basename(file)))


def measure(name, program, flags, peer=False):
    """Builds one program and returns its row: sizes in bytes and times in seconds."""
    folder = WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    compile_flags, link_flags = flags
    object_file, binary = folder / f"{program}.o", folder / program
    compiling = cpu_seconds(["g++", "-O2", *compile_flags, "-c", source_of(program, peer), "-o", object_file])
    run(["g++", object_file, *link_flags, "-o", binary])
    run(["strip", binary])
    arguments = [str(folder / "lenet.weights")] if program != "minimal" else []
    start = None
    if program == "lenet":
        run([binary, *arguments, "2"])  # steps
    else:
        start = seconds([binary, *arguments], 50)
    return {"program": binary.stat().st_size, "loaded": loaded(binary), "compile": compiling, "start": start}


def megabytes(size):
    return f"{size / 1e6:,.2f}" if size < 1e8 else f"{size / 1e6:,.0f}"


def table(rows, archives):
    lines = [f"{date.today()}, {machine()}, g++ -O2. Sizes in MB. Compiling: CPU seconds without linking. Running: the least "
             "wall time of 50 runs from start to end, in milliseconds.", "",
             "| program | with | stripped | loads besides libc | compiling | running |", "|---|---|---:|---:|---:|---:|"]
    for program, title in PROGRAMS.items():
        for name, measured in rows.items():
            m = measured[program]
            lines.append(f"| {title} | {name} | {megabytes(m['program'])} | {megabytes(m['loaded'])} | "
                         f"{m['compile']:.1f} | {'' if m['start'] is None else format(m['start'] * 1000, '.0f')} |")
    lines += ["", "Libraries on disk: " + ", ".join(f"{name} {megabytes(size)} MB" for name, size in archives.items()) + "."]
    return "\n".join(lines)


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", info)
    name = re.sub(r"\(R\)|\(TM\)| \d+-Core Processor| CPU.*", "", model[1]).strip() if model else "unknown processor"
    return f"{name}, {os.cpu_count()} cores"


def update(text):
    page = PAGE.read_text()
    changed = re.sub(r"(<!-- sizes:begin -->\n).*?(<!-- sizes:end -->)", lambda m: m[1] + text + "\n" + m[2], page,
                     flags=re.S)
    if changed == page and text not in page:
        sys.exit(f"error: {PAGE} has no markers <!-- sizes:begin --> and <!-- sizes:end -->")
    PAGE.write_text(changed)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    prefixes = {"Levin": pathlib.Path(arguments[0]), "Levin, static": pathlib.Path(arguments[1])}
    rows = {name: {p: measure(name.replace(", ", "_"), p, flags_of(prefix)) for p in PROGRAMS}
            for name, prefix in prefixes.items()}
    archives = {f"liblevin.a ({name})": next(prefix.rglob("liblevin.a")).stat().st_size for name, prefix in prefixes.items()}
    if len(arguments) > 2:
        flags = flags_of_torch(pathlib.Path(arguments[2]))
        rows["LibTorch"] = {p: measure("LibTorch", p, flags, peer=True) for p in PROGRAMS}
        folder = pathlib.Path(flags[1][0][2:])
        archives["LibTorch's lib folder"] = sum(f.stat().st_size for f in folder.iterdir() if f.is_file())
    text = table(rows, archives)
    print(text)
    if "--update" in sys.argv:
        update(text)


if __name__ == "__main__":
    main()
