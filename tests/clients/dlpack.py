"""NumPy and PyTorch share memory with Levin in one process, in both directions, by DLPack.

Called as the other clients, it starts levin_client_dlpack, which runs this file again inside of itself.
"""
import ctypes
import gc
import sys

if "LEVIN" not in globals():
    import os
    import pathlib
    import sysconfig

    library = sysconfig.get_config_var("INSTSONAME") or sysconfig.get_config_var("LDLIBRARY")
    if not library.startswith("libpython") or ".so" not in library:
        library = f"libpython{sys.version_info[0]}.{sys.version_info[1]}.so.1.0"
    beside = pathlib.Path(sysconfig.get_config_var("LIBDIR")) / library
    program = pathlib.Path(sys.argv[1]) / "levin_client_dlpack"
    environment = os.environ | {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": ":".join(filter(None, sys.path))}
    os.execve(program, [program, str(beside) if beside.exists() else library, __file__], environment)

import numpy
import torch

P, I, L, D = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_double
SIGNATURES = {
    "make": (P, I, L, L), "transposed": (P, P), "row": (P, P, L), "requires_grad": (P, P), "release": (None, P),
    "live": (L,), "error": (ctypes.c_char_p,), "item": (D, P, L), "fill": (None, P, D), "dtype": (I, P),
    "size": (L, P, I), "address": (P, P), "export_plain": (P, P), "export_versioned": (P, P, I),
    "import_plain": (P, P), "import_versioned": (P, P, I), "delete_plain": (None, P), "delete_versioned": (None, P)}
levin = {name: ctypes.CFUNCTYPE(*types)(LEVIN[name]) for name, types in SIGNATURES.items()}  # noqa: F821
TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
         torch.uint8, torch.bool, torch.complex64, torch.complex128]

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [P, ctypes.c_char_p, P]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = P, [ctypes.py_object, ctypes.c_char_p]
rename_capsule = ctypes.pythonapi.PyCapsule_SetName
rename_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]
USED = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}  # names must stay alive


class LevinTensor:
    """A tensor of Levin as an object with Python's DLPack protocol."""

    def __init__(self, pointer, versioned=True, read_only=False):
        assert pointer, levin["error"]()
        self.pointer, self.versioned, self.read_only = pointer, versioned, read_only

    def __del__(self):
        levin["release"](self.pointer)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if self.versioned and max_version is not None:
            handle = levin["export_versioned"](self.pointer, self.read_only)
            name = b"dltensor_versioned"
        else:
            handle, name = levin["export_plain"](self.pointer), b"dltensor"
        if not handle:
            raise BufferError(levin["error"]().decode())
        return new_capsule(handle, name, None)

    def item(self, i):
        return levin["item"](self.pointer, i)

    def sizes(self):
        out, axis = [], 0
        while (size := levin["size"](self.pointer, axis)) >= 0:
            out.append(size)
            axis += 1
        return tuple(out)


def make(dtype, rows=3, columns=4):
    return levin["make"](TYPES.index(dtype), rows, columns)


def take(x, versioned=True, never_copy=False):
    """Returns a tensor of Levin on the memory of an array or tensor."""
    capsule = x.__dlpack__(max_version=(1, 0)) if versioned else x.__dlpack__()
    name = b"dltensor_versioned" if versioned else b"dltensor"
    pointer = capsule_pointer(capsule, name)
    tensor = levin["import_versioned"](pointer, never_copy) if versioned else levin["import_plain"](pointer)
    if not tensor:
        raise BufferError(levin["error"]().decode())
    rename_capsule(capsule, USED[name])
    return LevinTensor(tensor)


def to_torch():
    for dtype in TYPES:
        for versioned in [True, False]:
            x = torch.from_dlpack(LevinTensor(make(dtype), versioned))
            expected = torch.arange(12).view(3, 4)
            expected = expected % 2 == 1 if dtype == torch.bool else expected.to(dtype)
            assert x.dtype == dtype and torch.equal(x, expected), (dtype, x)
    pointer = make(torch.float32)
    x = torch.from_dlpack(LevinTensor(levin["transposed"](pointer)))
    assert x.shape == (4, 3) and x.stride() == (1, 4) and x[3, 2] == 11
    x[0, 0] = -1  # seen by both
    assert levin["item"](pointer, 0) == -1
    levin["fill"](pointer, 5)
    assert bool((x == 5).all())
    row = torch.from_dlpack(LevinTensor(levin["row"](pointer, 2)))
    assert row.data_ptr() == levin["address"](pointer) + 32 and row.tolist() == [5, 5, 5, 5]
    assert torch.from_dlpack(LevinTensor(make(torch.float32, 0, 4))).shape == (0, 4)
    levin["release"](pointer)


def to_numpy():
    for dtype in TYPES:
        if dtype == torch.bfloat16:  # NumPy has none, and says so
            continue
        for versioned in [True, False]:
            x = numpy.from_dlpack(LevinTensor(make(dtype), versioned))
            expected = numpy.arange(12).reshape(3, 4)
            expected = expected % 2 == 1 if dtype == torch.bool else expected.astype(str(dtype)[6:])
            assert x.dtype == expected.dtype and numpy.array_equal(x, expected), (dtype, x)
    x = numpy.from_dlpack(LevinTensor(make(torch.float32)))
    x[1, 2] = 50
    assert x.flags.writeable
    assert not numpy.from_dlpack(LevinTensor(make(torch.float32), read_only=True)).flags.writeable
    x = numpy.from_dlpack(LevinTensor(levin["transposed"](make(torch.int64))))
    assert x.strides == (8, 32) and x[3, 1] == 7


def from_torch():
    for dtype in TYPES:
        for versioned in [True, False]:
            x = torch.arange(12).view(3, 4)
            x = x % 2 == 1 if dtype == torch.bool else x.to(dtype)
            t = take(x, versioned)
            assert levin["dtype"](t.pointer) == TYPES.index(dtype) and t.sizes() == (3, 4)
            assert levin["address"](t.pointer) == x.data_ptr()
            assert [t.item(i) for i in range(12)] == [float(v.real) for v in x.flatten().tolist()]
    x = torch.arange(24.0).view(4, 6)
    t = take(x[1:3, ::2].t())
    assert t.sizes() == (3, 2) and [t.item(i) for i in range(6)] == [6, 12, 8, 14, 10, 16]
    levin["fill"](t.pointer, -1)
    assert x[1].tolist() == [-1, 7, -1, 9, -1, 11]
    refuse(lambda: take(torch.ones(2, dtype=torch.uint16)), "Levin has no type uint16")


def from_numpy():
    x = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    t = take(x)
    assert levin["address"](t.pointer) == x.ctypes.data
    levin["fill"](t.pointer, 3)
    assert x.sum() == 36
    assert [take(numpy.arange(4)[::-1]).item(i) for i in range(4)] == [3, 2, 1, 0]  # negative strides: a copy
    refuse(lambda: take(numpy.arange(4)[::-1], never_copy=True), "it has negative strides")
    x.flags.writeable = False
    t = take(x)
    assert levin["address"](t.pointer) != x.ctypes.data  # read-only: a copy
    levin["fill"](t.pointer, 7)
    assert x.sum() == 36


def lifetimes():
    """Memory lives as long as either side uses it, and no longer."""
    gc.collect()
    before = levin["live"]()
    x = torch.from_dlpack(LevinTensor(make(torch.float32)))
    y = numpy.from_dlpack(LevinTensor(make(torch.float32)))
    assert levin["live"]() == before + 2
    assert x[2, 3] == 11 and y[2, 3] == 11
    del x, y
    gc.collect()
    assert levin["live"]() == before
    array = numpy.arange(6.0)
    references = sys.getrefcount(array)
    t = take(array)
    assert sys.getrefcount(array) > references
    del t
    assert sys.getrefcount(array) == references
    # A tensor goes round through both libraries and comes back to the same memory.
    t = LevinTensor(make(torch.float32))
    back = take(torch.from_dlpack(numpy.from_dlpack(t)))
    assert levin["address"](back.pointer) == levin["address"](t.pointer)
    del t, back
    gc.collect()
    assert levin["live"]() == before


def refuse(action, part):
    try:
        action()
    except BufferError as e:
        assert part in str(e), e
    else:
        raise AssertionError(f"no error says {part}")


def refusals():
    refuse(lambda: torch.from_dlpack(LevinTensor(levin["requires_grad"](make(torch.float32)))), "requires grad")


for check in [to_torch, to_numpy, from_torch, from_numpy, lifetimes, refusals]:
    check()
