"""subset.py FROM TO TRAIN TEST: writes the first images and labels of Fashion-MNIST's IDX files to smaller files."""
import gzip
import pathlib
import sys


def first_items(data, count):
    """Returns an IDX file with the first items of another, both as bytes."""
    axes = data[3]
    sizes = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(axes)]
    item = 1
    for size in sizes[1:]:
        item *= size
    head = 4 + 4 * axes
    count = min(count, sizes[0])
    return data[:4] + count.to_bytes(4, "big") + data[8:head] + data[head:head + count * item]


def main():
    source, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    counts = {"train": int(sys.argv[3]), "t10k": int(sys.argv[4])}
    for split, count in counts.items():
        for kind in ("images-idx3", "labels-idx1"):
            name = f"{split}-{kind}-ubyte.gz"
            data = first_items(gzip.decompress((source / name).read_bytes()), count)
            (target / name).write_bytes(gzip.compress(data, 6, mtime=0))


main()
