"""Writes tests/interop/files with PyTorch, safetensors and Lightning: what the tests of interop read.

Run it in a venv with torch, numpy, safetensors and lightning: python tests/interop/make_files.py
Values follow formulas that the tests repeat, so that a file made by another version holds the same.
"""
import argparse
import collections
import os
import pathlib
import warnings

import numpy
import safetensors.torch
import torch

warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).parent / "files"

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
          torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128]


def net():
    """A network whose parameter k has the values (i - 3 * k) / 8."""
    model = torch.nn.Sequential(collections.OrderedDict(
        fc=torch.nn.Linear(4, 3), norm=torch.nn.BatchNorm1d(3), out=torch.nn.Linear(3, 2)))
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            p.copy_(((torch.arange(p.numel()) - 3 * k) / 8).view_as(p))
    return model


def types():
    """Element i of each type is i - 1, as bool whether that is not 0; complex ones have the imaginary part i / 2."""
    values = torch.arange(4) - 1
    out = {}
    for dtype in DTYPES:
        if dtype.is_complex:
            out[str(dtype)[6:]] = torch.complex(values.double(), torch.arange(4).double() / 2).to(dtype)
        else:
            out[str(dtype)[6:]] = values.to(dtype)
    return out


def views():
    base = torch.arange(24, dtype=torch.float32).view(4, 6)
    return {"base": base, "transposed": base.t(), "corner": base[1:3, 2:5], "row": base[2], "step": base[:, ::3],
            "expanded": torch.tensor([7.0]).expand(2, 3), "scalar": torch.tensor(2.5), "empty": torch.empty(0),
            "no_rows": torch.empty(0, 3), "alone": torch.arange(3.0)}


def checkpoint():
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.25)
    for p in model.parameters():
        p.grad = torch.full_like(p, 0.5)
    optimizer.step()
    return {"model": net().state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "best": 0.75, "done": False,
            "name": "run \N{GREEK SMALL LETTER ALPHA}", "note": None, "history": [1.5, 0.5, -2.0],
            "steps": (1, 300, 70000, -5),
            "large": 2**40, "huge": 2**70, "minus_huge": -(2**70), "size": torch.Size([2, 3]), "dtype": torch.bfloat16,
            "device": torch.device("cuda", 1), "layout": torch.strided, "bytes": b"\x00\xff\n", "set": {5},
            "complex": complex(1, -2), "nested": [{"a": [torch.tensor([1, 2])]}, []],
            "counts": collections.Counter("aab"), 7: "seven"}


def lightning_checkpoint(path):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self, width, rate):
            super().__init__()
            self.save_hyperparameters()
            self.net = net()

        def training_step(self, batch, _):
            return self.net(batch[0]).sum() * 0

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=0.0, momentum=0.5)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 4)), batch_size=2)
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False,
                                enable_model_summary=False, enable_checkpointing=False, default_root_dir="/tmp")
    trainer.fit(Module(width=8, rate=0.5), data)
    trainer.save_checkpoint(path)


class Attack:
    def __reduce__(self):
        return os.system, ("touch executed",)


def main():
    HERE.mkdir(exist_ok=True)
    os.chdir(HERE)
    torch.save(net().state_dict(), "net.pt")
    torch.save(types(), "types.pt")
    torch.save(views(), "views.pt")
    torch.save(checkpoint(), "checkpoint.pt")
    torch.save(checkpoint(), "protocol4.pt", pickle_protocol=4)
    shared = torch.nn.Parameter(torch.arange(6.0).view(2, 3))
    torch.save({"a": shared, "b": shared, "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False)},
               "parameters.pt")
    torch.save(torch.arange(3), "tensor.pt")
    torch.serialization.set_crc32_options(False)
    torch.save(torch.arange(3), "no_checksums.pt")
    torch.serialization.set_crc32_options(True)
    lightning_checkpoint("lightning.ckpt")
    # Refused files, each for a reason of its own.
    torch.save({"x": torch.ones(2)}, "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(net(), "module.pt")
    torch.save({"weight": torch.ones(2), "args": argparse.Namespace(lr=0.5, layers=[1, 2])}, "namespace.pt")
    torch.save({"x": Attack()}, "attack.pt")
    torch.save({"best": numpy.float64(0.5)}, "numpy_scalar.pt")
    torch.save({"x": torch.ones(4).to(torch.float8_e4m3fn)}, "float8.pt")
    torch.save({"x": torch.eye(2).to_sparse()}, "sparse.pt")
    torch.save({"x": torch.ones(2, dtype=torch.complex64).conj()}, "conj.pt")
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), "script.pt")
    safetensors.torch.save_file({**{k: v for k, v in types().items() if "complex" not in k},
                                 "matrix": torch.arange(6.0).view(2, 3)}, "types.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
