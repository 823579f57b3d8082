"""How long a 4 KiB append with fdatasync takes on the disk of a directory: the mean and the median, in milliseconds.

sync.py DIRECTORY [HOW MANY]"""
import os
import statistics
import sys
import time

path = os.path.join(sys.argv[1], "sync.tmp")
file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
block = os.urandom(4096)
times = []
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 3000):
    begun = time.perf_counter()
    os.write(file, block)
    os.fdatasync(file)
    times.append((time.perf_counter() - begun) * 1000)
os.close(file)
os.unlink(path)
print(f"{statistics.fmean(times):.3f} {statistics.median(times):.3f}")
