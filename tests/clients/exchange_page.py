"""Runs docs/exchange.md from top to bottom: its Python, its C++ program, and its Python again."""
import os
import pathlib
import re
import tempfile

from client import run

page = pathlib.Path(__file__).parents[2] / "docs/exchange.md"
before, after, memory = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    names = {}
    exec(before, names)
    printed = run("exchange_page", folder)
    assert "model.fc.weight: float32 (3, 4)\n" in printed and "trained for 3 epochs\n" in printed, printed
    exec(after, names)
    net, ones = names["net"], names["torch"].ones(1, 4)
    expected = net.eval()(ones)[0].tolist()
    for value, text in zip(expected, printed.splitlines()[-1].split(), strict=True):
        assert abs(value - float(text)) < 1e-5, (expected, printed)
    assert "__dlpack__" in memory  # tests/clients/dlpack.py runs its longer form
    os.chdir("/")
