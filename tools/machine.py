"""This machine in words, for the tables and files that the scripts behind ./run write."""
import os
import pathlib
import platform


def cpu_model():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def simd():
    """The widest instruction set that the kernels can use here."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    flags = next((line for line in lines if line.startswith("flags")), "")
    if platform.machine() == "aarch64":
        return "NEON"
    if " avx512f" in flags:
        return "AVX-512 and AMX" if " amx_bf16" in flags else "AVX-512"
    return "AVX2" if " avx2" in flags else "SSE4"


def machine():
    return f"{cpu_model()}, {os.cpu_count()} cores, {simd()}"
