"""Files of safetensors, read by Levin; files of Levin, read by safetensors, for NumPy and for PyTorch."""
import tempfile

import numpy
import safetensors
import safetensors.numpy
import safetensors.torch
import torch

from client import run


def main(folder):
    torch.manual_seed(1)
    state = {"f64": torch.randn(3, dtype=torch.float64), "f32": torch.randn(2, 3), "f16": torch.randn(5).half(),
             "bf16": torch.randn(4).bfloat16(), "i64": torch.arange(3), "u8": torch.arange(7).to(torch.uint8),
             "flag": torch.tensor([True, False]), "scalar": torch.tensor(2.5), "none": torch.empty(0, 2)}
    safetensors.torch.save_file(state, folder + "/in.safetensors", metadata={"format": "pt"})
    for options in [[], ["--mmap"]]:
        run("exchange", "convert", *options, folder + "/in.safetensors", folder + "/out.safetensors")
        back = safetensors.torch.load_file(folder + "/out.safetensors")
        assert back.keys() == state.keys()
        assert all(torch.equal(back[k], v) and back[k].dtype == v.dtype for k, v in state.items())
        with safetensors.safe_open(folder + "/out.safetensors", framework="pt") as file:
            assert file.metadata() == {"format": "pt"}
            assert torch.equal(file.get_slice("f32")[:, 1:], state["f32"][:, 1:])
    arrays = {"a": numpy.arange(6, dtype=numpy.float32).reshape(2, 3), "b": numpy.array([1, 2], dtype=numpy.int16)}
    safetensors.numpy.save_file(arrays, folder + "/in.safetensors")
    run("exchange", "convert", folder + "/in.safetensors", folder + "/out.npz")
    with numpy.load(folder + "/out.npz", allow_pickle=False) as read:
        assert all(numpy.array_equal(read[k], v) and read[k].dtype == v.dtype for k, v in arrays.items())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(directory)
