"""Files of torch.save, read by Levin and converted; files of Levin, read by torch.load(weights_only=True)."""
import collections
import os
import random
import tempfile

import numpy
import safetensors.torch
import torch

from client import refused, run

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
          torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128]


def random_tensor(dtype, *sizes):
    if dtype == torch.bool:
        return torch.rand(sizes) < 0.5
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(sizes, dtype=torch.complex128 if dtype.is_complex else torch.float64).to(dtype)
    return torch.randint(0 if dtype == torch.uint8 else -100, 100, sizes).to(dtype)


def same(a, b):
    assert a.keys() == b.keys(), (a.keys(), b.keys())
    for name, x in a.items():
        y = b[name]
        assert x.dtype == y.dtype and x.shape == y.shape, (name, x.dtype, y.dtype, x.shape, y.shape)
        assert torch.equal(x, y), name


def every_type(folder):
    state = {str(t)[6:]: random_tensor(t, 3, 5) for t in DTYPES}
    base = torch.randn(6, 8)
    state |= {"transposed": base.t(), "part": base[1:4, ::3], "scalar": torch.tensor(2.5), "none": torch.empty(0, 4),
              "wide": torch.randn(3, 1).expand(3, 4), "parameter": torch.nn.Parameter(torch.randn(2))}
    real = {k: v for k, v in state.items() if not v.is_complex()}
    torch.save(state, folder + "/in.pt")
    torch.save(real, folder + "/real.pt", pickle_protocol=5)
    for options in [[], ["--mmap"]]:
        run("exchange", "convert", *options, folder + "/in.pt", folder + "/out.pt")
        same(state, torch.load(folder + "/out.pt", weights_only=True))
        run("exchange", "convert", *options, folder + "/real.pt", folder + "/out.safetensors")
        same(real, safetensors.torch.load_file(folder + "/out.safetensors"))
    numpy_types = {k: v for k, v in state.items() if v.dtype != torch.bfloat16}
    torch.save(numpy_types, folder + "/numpy.pt")
    run("exchange", "convert", folder + "/numpy.pt", folder + "/out.npz")
    with numpy.load(folder + "/out.npz", allow_pickle=False) as arrays:
        same(numpy_types, {k: torch.from_numpy(arrays[k]) for k in arrays.files})
    # A tied weight is one storage in the file that Levin writes, and every name has it after torch.load.
    tied = torch.randn(50, 4)
    torch.save({"a": tied, "b": tied}, folder + "/tied.pt")
    run("exchange", "convert", folder + "/tied.pt", folder + "/out.pt")
    back = torch.load(folder + "/out.pt", weights_only=True)
    assert back["a"].data_ptr() == back["b"].data_ptr()
    same({"a": tied, "b": tied}, back)
    # The writer of Levin's file is also read by a mapped torch.load.
    same({"a": tied, "b": tied}, torch.load(folder + "/out.pt", weights_only=True, mmap=True))


def random_tree(depth, tensors, path):
    """Returns a nested value; its tensors are added to `tensors` by their dotted names."""
    kind = random.random()
    if depth == 0 or kind < 0.4:
        if random.random() < 0.5:
            return random.choice([None, True, 3, -2**40, 0.1, "text", "\N{SNOWMAN}", b"\xff", torch.float16,
                                  torch.Size([2]), (1, 2), [], {}, {3}, torch.device("cpu")])
        x = random_tensor(random.choice(DTYPES), *[random.randrange(1, 5) for _ in range(random.randrange(4))])
        if x.dim() > 1 and random.random() < 0.5:
            x = x.transpose(0, 1)[:, ::2] if x.dim() > 1 else x
        tensors[path] = x
        return x
    if kind < 0.7:
        make = random.choice([dict, collections.OrderedDict])
        return make((key, random_tree(depth - 1, tensors, f"{path}.{key}" if path else str(key)))
                    for key in random.sample(["a", "b", 7, "long name", "d.e"], random.randrange(4)))
    items = [random_tree(depth - 1, tensors, f"{path}.{i}" if path else str(i)) for i in range(random.randrange(4))]
    return random.choice([list, tuple])(items)


def random_checkpoints(folder):
    random.seed(1)
    for _ in range(40):
        tensors = {}
        tree = {"root": random_tree(4, tensors, "root"), "x": torch.ones(1)}
        tensors["x"] = tree["x"]
        torch.save(tree, folder + "/tree.pt", pickle_protocol=random.choice([2, 3, 4, 5]))
        run("exchange", "convert", folder + "/tree.pt", folder + "/out.pt")
        same(tensors, torch.load(folder + "/out.pt", weights_only=True))
        shown = run("exchange", "show", folder + "/tree.pt")
        for name, x in tensors.items():
            assert f"{name}: {str(x.dtype)[6:]} {tuple(x.shape)}\n" in shown, shown


def networks(folder):
    """State dicts and optimizers of real networks."""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Flatten(),
                              torch.nn.LSTM(8, 4, num_layers=2, bidirectional=True),
                              torch.nn.TransformerEncoderLayer(16, 2), torch.nn.Embedding(10, 3))
    optimizer = torch.optim.AdamW(net.parameters())
    for p in net.parameters():
        p.grad = torch.randn_like(p)
    optimizer.step()
    torch.save(net.state_dict(), folder + "/net.pt")
    run("exchange", "convert", "--mmap", folder + "/net.pt", folder + "/out.safetensors")
    net.load_state_dict(safetensors.torch.load_file(folder + "/out.safetensors"))
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, folder + "/all.pt")
    assert "epoch: 3\n" in run("exchange", "show", folder + "/all.pt")
    run("exchange", "convert", folder + "/all.pt", folder + "/out.pt")
    moments = optimizer.state_dict()["state"]
    back = torch.load(folder + "/out.pt", weights_only=True)
    assert all(torch.equal(back[f"optimizer.state.{i}.exp_avg"], m["exp_avg"]) for i, m in moments.items())


class Attack:
    def __reduce__(self):
        return os.system, ("touch executed",)


def refusals(folder):
    os.chdir(folder)
    torch.save({"x": torch.ones(2), "y": Attack()}, "attack.pt")
    assert "names posix.system" in refused("exchange", "show", "attack.pt")
    assert not os.path.exists("executed")
    torch.save(torch.ones(2), "old.pt", _use_new_zipfile_serialization=False)
    assert "before PyTorch 1.6" in refused("exchange", "show", "old.pt")
    # The remedy that the sentence gives.
    torch.save(torch.load("old.pt", weights_only=True), "new.pt")
    assert run("exchange", "show", "new.pt") == "float32 (2,)\n"


if __name__ == "__main__":
    torch.manual_seed(1)
    for check in [every_type, random_checkpoints, networks, refusals]:
        with tempfile.TemporaryDirectory() as directory:
            check(directory)
