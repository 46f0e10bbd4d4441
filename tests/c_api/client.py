"""A client of the C interface by ctypes alone. Usage: client.py LIBRARY FOLDER"""
import ctypes as c
import struct
import sys


class Array(c.Structure):
    _fields_ = [("data", c.c_void_p), ("dtype", c.c_int), ("ndim", c.c_int32), ("shape", c.POINTER(c.c_int64))]


FLOAT32, INT64 = 0, 2
OK, INVALID_ARGUMENT, SHAPE_ERROR, IO_ERROR = 0, 1, 2, 4

levin = c.CDLL(sys.argv[1])
levin.levin_last_error.restype = levin.levin_version.restype = c.c_char_p
levin.levin_outputs_count.restype = c.c_size_t
for name in ("model", "outputs", "trainer"):
    free = getattr(levin, f"levin_{name}_free")
    free.argtypes, free.restype = [c.c_void_p], None
levin.levin_model_forward.argtypes = [c.c_void_p, c.POINTER(Array), c.c_size_t, c.POINTER(c.c_void_p)]
levin.levin_outputs_get.argtypes = [c.c_void_p, c.c_size_t, c.POINTER(Array)]
levin.levin_outputs_count.argtypes = [c.c_void_p]
levin.levin_trainer_create.argtypes = [c.c_void_p, c.c_char_p, c.c_char_p, c.c_double, c.POINTER(c.c_void_p)]
levin.levin_trainer_step.argtypes = [c.c_void_p, c.POINTER(Array), c.c_size_t, c.POINTER(Array), c.POINTER(c.c_double)]


class LevinError(Exception):
    pass


def call(function, *arguments):
    status = getattr(levin, "levin_" + function)(*arguments)
    if status != OK:
        raise LevinError(status, levin.levin_last_error().decode())


def array(values, dtype, *shape):
    """An Array of a list of numbers, which it keeps alive."""
    kind = c.c_float if dtype == FLOAT32 else c.c_int64
    memory, sizes = (kind * len(values))(*values), (c.c_int64 * len(shape))(*shape)
    result = Array(c.cast(memory, c.c_void_p), dtype, len(shape), sizes)
    result.kept = memory, sizes
    return result


def forward(model, x):
    outputs, y = c.c_void_p(), Array()
    call("model_forward", model, x, 1, c.byref(outputs))
    assert levin.levin_outputs_count(outputs) == 1
    call("outputs_get", outputs, 0, c.byref(y))
    shape = y.shape[: y.ndim]
    assert y.dtype == FLOAT32 and shape == [96, 3], shape
    values = list(c.cast(y.data, c.POINTER(c.c_float))[: 96 * 3])
    levin.levin_outputs_free(outputs)
    return values


def floats(path):
    with open(path, "rb") as file:
        data = file.read()
    return struct.unpack(f"<{len(data) // 4}f", data)


def refused(status, sentence, function, *arguments):
    try:
        call(function, *arguments)
    except LevinError as error:
        assert error.args[0] == status and sentence in error.args[1], error
    else:
        raise AssertionError(f"{function} accepted what it has to refuse")


folder = sys.argv[2]
pixels, expected = floats(folder + "/x.bin"), floats(folder + "/y.bin")
x = array(pixels, FLOAT32, 96, 6)
model, trainer, loss = c.c_void_p(), c.c_void_p(), c.c_double()
call("model_load", (folder + "/net.onnx").encode(), c.byref(model))
y = forward(model, x)
assert len(y) == len(expected) and max(abs(a - b) for a, b in zip(y, expected)) <= 1e-5

classes = [2 if pixels[6 * i] > 0.3 else 1 if pixels[6 * i + 1] > 0 else 0 for i in range(96)]
call("trainer_create", model, b"cross_entropy", b"sgd", 0.5, c.byref(trainer))
losses = []
for step in range(150):
    call("trainer_step", trainer, x, 1, array(classes, INT64, 96), c.byref(loss))
    losses.append(loss.value)
assert losses[-1] < 0.4 * losses[0], losses

unset = c.c_void_p()
refused(IO_ERROR, "absent.onnx", "model_load", (folder + "/absent.onnx").encode(), c.byref(unset))
refused(SHAPE_ERROR, "(96, 7)", "model_forward", model, array([0.0] * 96 * 7, FLOAT32, 96, 7), 1, c.byref(unset))
refused(INVALID_ARGUMENT, "model is null", "model_forward", None, x, 1, c.byref(unset))
assert not unset
levin.levin_trainer_free(trainer)
levin.levin_model_free(model)
print(f"python: version {levin.levin_version().decode()}, loss {losses[0]:.3f} to {losses[-1]:.3f}")
