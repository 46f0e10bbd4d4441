"""Files of numpy.save, savez and savez_compressed, read by Levin; files of Levin, read by numpy.load."""
import tempfile

import numpy

from client import refused, run

TYPES = ["?", "i1", "u1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]


def same(a, b):
    assert a.shape == b.shape and a.dtype == b.dtype.newbyteorder("="), (a.shape, b.shape, a.dtype, b.dtype)
    assert numpy.array_equal(a, b), (a, b)


def arrays():
    """Returns arrays of every type, in both byte orders and both element orders, of none to eight dimensions."""
    random = numpy.random.default_rng(1)
    out = {}
    for code in TYPES:
        for order in "<>" if code[-1] not in "?1" else "|":
            values = random.integers(0, 2 if code == "?" else 100, (3, 4, 2)).astype(order + code)
            out[f"{code}{'be' if order == '>' else ''}"] = values
            out[f"fortran_{code}{'be' if order == '>' else ''}"] = numpy.asfortranarray(values)
    return out | {"scalar": numpy.array(2.5), "none": numpy.empty((0, 3)), "vector": numpy.arange(5),
                  "eight": numpy.arange(4.0).reshape(1, 2, 1, 1, 2, 1, 1, 1)}


def main(folder):
    values = arrays()
    for name, x in values.items():
        numpy.save(folder + "/in.npy", x)
        for options in [[], ["--mmap"]]:
            run("exchange", "convert", *options, folder + "/in.npy", folder + "/out.npy")
            same(numpy.load(folder + "/out.npy", allow_pickle=False), x)
    for save in [numpy.savez, numpy.savez_compressed]:
        save(folder + "/in.npz", **values)
        for options in [[], ["--mmap"]]:
            run("exchange", "convert", *options, folder + "/in.npz", folder + "/out.npz")
            with numpy.load(folder + "/out.npz", allow_pickle=False) as read:
                assert read.files == list(values)
                for name, x in values.items():
                    same(read[name], x)
    same(numpy.load(folder + "/out.npy", mmap_mode="r"), values["eight"])
    numpy.save(folder + "/in.npy", numpy.array(["text"]))
    assert "its type '<U4' is none of" in refused("exchange", "convert", folder + "/in.npy", folder + "/out.npy")
    numpy.save(folder + "/in.npy", numpy.array([object()]), allow_pickle=True)
    assert "its type '|O' is none of" in refused("exchange", "convert", folder + "/in.npy", folder + "/out.npy")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(directory)
