"""ONNX files of Levin are accepted by onnx.checker, and give Levin's results in onnxruntime.

The test programs write them: for each NAME.onnx a NAME.safetensors with tensors input.0, input.1, ... and the outputs
that Levin computed, output.0, output.1, ...
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from safetensors.numpy import load_file


def tensors(stored, kind):
    return [stored[f"{kind}.{i}"] for i in range(sum(name.startswith(kind + ".") for name in stored))]


def check(path):
    """Returns what is wrong with a file, or None."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    stored = load_file(path.with_suffix(".safetensors"))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    given = dict(zip([i.name for i in model.graph.input], tensors(stored, "input")))
    actual = session.run(None, {name: given[name] for name in names})
    expected = tensors(stored, "output")
    if not expected or len(actual) != len(expected):
        return f"{len(actual)} outputs instead of {len(expected)}"
    for i, (a, e) in enumerate(zip(actual, expected)):
        if a.shape != e.shape or a.dtype != e.dtype:
            return f"output {i} is {a.dtype} {a.shape} instead of {e.dtype} {e.shape}"
        if not numpy.isfinite(a).all():
            return f"output {i} has values that are not finite"
        allowed = 2e-5 * max(1.0, float(numpy.abs(e).max())) if e.dtype.kind == "f" else 0
        worst = float(numpy.abs(a.astype(numpy.float64) - e.astype(numpy.float64)).max())
        if worst > allowed:
            return f"output {i} differs by {worst:.3g}, allowed are {allowed:.3g}"
    return None


def write_files(folder):
    """Runs the tests that export; those of the examples if they are built."""
    programs = pathlib.Path(sys.argv[1])
    for name, cases in [("levin_interop_tests", "*export and import*"), ("levin_examples_tests", "*are exported")]:
        if name == "levin_examples_tests" and not (programs / name).exists():
            continue
        done = subprocess.run([(programs / name).resolve(), f"--test-case={cases}"], capture_output=True, text=True,
                              env=os.environ | {"LEVIN_ONNX_FILES": folder})
        assert done.returncode == 0, done.stdout


def main(folder):
    write_files(folder)
    files = sorted(pathlib.Path(folder).glob("*.onnx"))
    failed = 0
    for path in files:
        try:
            wrong = check(path)
        except Exception as e:  # a client's refusal is a failure of the file
            wrong = f"{type(e).__name__}: {e}"
        if wrong:
            failed += 1
            print(f"{path.name}: {wrong}")
    print(f"{len(files) - failed} passed, {failed} failed (onnx {onnx.__version__}, "
          f"onnxruntime {onnxruntime.__version__})")
    assert failed == 0 and len(files) > 200


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(directory)
