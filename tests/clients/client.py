"""Functions of the clients. Each is called as `<client>.py PROGRAMS`, the folder of the programs of Levin."""
import pathlib
import subprocess
import sys

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()


def program(name):
    return PROGRAMS / f"levin_client_{name}"


def run(name, *arguments):
    """Runs a program of Levin; returns its output. Fails with its message."""
    done = subprocess.run([program(name), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"{name} {arguments}: {done.stderr}"
    return done.stdout


def refused(name, *arguments):
    """Returns the one sentence with which a program of Levin refuses."""
    done = subprocess.run([program(name), *arguments], capture_output=True, text=True)
    assert done.returncode == 1, f"{name} {arguments} ended with {done.returncode}: {done.stderr}"
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip()
