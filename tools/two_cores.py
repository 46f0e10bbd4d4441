"""How much two threads compute beside one on this machine at the moment, for ./run compare.

Virtual processors may be two hyperthreads of one core, or shared with other machines: for minutes two threads then bring
no more than one, and the ratio of two programs that ran in different phases says nothing. As a script it measures once
for each line that it reads: PyTorch, whose products it times, then is not part of the process that measures others'
memory.
"""
import statistics
import subprocess
import sys
import threading
import time

ENOUGH = 1.8
PRODUCTS, SIZE = 60, 256  # about 20 ms a thread


def speedup():
    """Returns the work of two threads at once over the work of one in the same time, with products of matrices."""
    import torch
    a = torch.ones(SIZE, SIZE)

    def multiply():
        torch.set_num_threads(1)  # it holds for the thread that calls it
        for _ in range(PRODUCTS):
            torch.mm(a, a)

    def seconds(count):
        threads = [threading.Thread(target=multiply) for _ in range(count)]
        start = time.perf_counter()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return time.perf_counter() - start

    multiply()
    return 2 * min(seconds(1) for _ in range(3)) / statistics.median(seconds(2) for _ in range(3))


class Watch:
    """Waits before a measurement until two threads bring ENOUGH, and repeats one after which they bring less, for
    `patience` seconds in all. Keeps what it saw."""

    def __init__(self, patience):
        self.left = patience
        self.seen = []
        self.repeated = 0
        self.script = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def speedup(self):
        self.script.stdin.write("\n")
        self.script.stdin.flush()
        return float(self.script.stdout.readline())

    def wait(self):
        start = time.monotonic()
        while (now := self.speedup()) < ENOUGH and time.monotonic() - start < self.left:
            time.sleep(1)
        self.left = max(0, self.left - (time.monotonic() - start))
        self.seen.append(now)

    def measure(self, run):
        """Returns the result of run(), which is repeated while two threads bring less than ENOUGH after it and the
        patience lasts."""
        while True:
            self.wait()
            start = time.monotonic()
            result, after = run(), self.speedup()
            taken = time.monotonic() - start
            if after >= ENOUGH or taken > self.left:
                self.seen.append(after)
                return result
            self.left -= taken
            self.repeated += 1

    def in_words(self):
        if not self.seen:
            return ""
        again = f"; {self.repeated} rounds after which they computed less were repeated" if self.repeated else ""
        return (f"; around a row two threads computed {statistics.median(self.seen):.2f} times as much as one "
                f"({min(self.seen):.2f} to {max(self.seen):.2f}){again}")


if __name__ == "__main__":
    for _ in sys.stdin:
        print(speedup(), flush=True)
