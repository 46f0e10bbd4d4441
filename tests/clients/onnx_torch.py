"""Networks that PyTorch exports to ONNX give PyTorch's results in Levin."""
import importlib.util
import subprocess
import sys
import tempfile
import warnings

import torch
from safetensors.torch import load_file, save_file
from torch import nn


class Block(nn.Module):
    """A block of ResNet-18 with a shortcut, and the head behind it."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(8)
        self.down = nn.Sequential(nn.Conv2d(3, 8, 1, stride=2, bias=False), nn.BatchNorm2d(8))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return self.fc(torch.flatten(self.pool(torch.relu(y + self.down(x))), 1))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.rnn = kind(4, 6, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.rnn(x)[0]


class Functions(nn.Module):
    """Views and operations with shapes that depend on the batch."""

    def forward(self, x):
        b, t, c = x.shape
        y = x.reshape(b, t, 2, c // 2).permute(0, 2, 1, 3)
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        scores = (y @ y.transpose(-2, -1) / c ** 0.5).masked_fill(~mask, float("-inf"))
        y = (scores.softmax(-1) @ y).transpose(1, 2).reshape(b, t, c)
        y = torch.cat([y[:, :1].expand(b, 2, c), nn.functional.pad(y, (0, 0, 1, 1))[:, 1:]], 1)
        return y.std(-1), nn.functional.gelu(y).clamp(min=-0.5), torch.stack([y.amax(1), y.mean(1)], -1)


NETWORKS = {
    "mlp": (nn.Sequential(nn.Linear(7, 16), nn.Tanh(), nn.Dropout(), nn.Linear(16, 3), nn.LogSoftmax(1)), (7,)),
    "lenet": (nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                            nn.AvgPool2d(2), nn.Flatten(), nn.Linear(400, 10)), (1, 28, 28)),
    "resnet block": (Block(), (3, 16, 16)),
    "transformer": (nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu"), (5, 16)),
    "lstm": (Recurrent(nn.LSTM), (5, 4)),
    "gru": (Recurrent(nn.GRU), (5, 4)),
    "layers": (nn.Sequential(nn.ConvTranspose2d(2, 4, 3, stride=2), nn.GroupNorm(2, 4), nn.SiLU(),
                             nn.Upsample(scale_factor=2), nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.Hardswish(),
                             nn.PReLU(4), nn.InstanceNorm2d(4), nn.PixelShuffle(2), nn.ELU()), (2, 5, 4)),
    "functions": (Functions(), (6, 8)),
}


def export(net, x, path, new):
    options = {"input_names": ["x"], "opset_version": 18}
    if new:
        options["dynamic_shapes"] = ({0: torch.export.Dim("batch")},)
    else:
        options["dynamic_axes"] = {"x": {0: "batch"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (x,), path, dynamo=new, **({"verbose": False, "external_data": False} if new else {}),
                          **options)


def check(program, folder, name, new):
    torch.manual_seed(1)
    net, sizes = NETWORKS[name]
    net.eval()
    path = f"{folder}/net.onnx"
    export(net, torch.randn(2, *sizes), path, new)
    for batch in [1, 5]:
        x = torch.randn(batch, *sizes)
        save_file({"input.0": x}, f"{folder}/in.safetensors")
        done = subprocess.run([program, "run", path, f"{folder}/in.safetensors", f"{folder}/out.safetensors"],
                              capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.stderr}"
        found = load_file(f"{folder}/out.safetensors")
        with torch.no_grad():
            expected = net(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        assert len(found) == len(expected), f"{name}: {len(found)} outputs instead of {len(expected)}"
        for i, e in enumerate(expected):
            torch.testing.assert_close(found[f"output.{i}"], e, rtol=1e-4, atol=1e-5, msg=lambda m: f"{name}: {m}")


def main():
    program = f"{sys.argv[1]}/levin_client_onnx"
    exporters = [False] + ([True] if importlib.util.find_spec("onnxscript") else [])
    count = 0
    for new in exporters:
        for name in NETWORKS:
            if name == "transformer" and not new:
                continue  # the older exporter of PyTorch 2.15 fails on it
            with tempfile.TemporaryDirectory() as folder:
                check(program, folder, name, new)
            count += 1
    print(f"{count} networks of PyTorch {torch.__version__} passed, with {len(exporters)} exporters")


if __name__ == "__main__":
    main()
