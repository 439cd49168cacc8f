"""Seconds, processor seconds and peak memory of a command, for `cargo xtask bench scale`.

    python scale.py [--pipe FILE] -- COMMAND ...      three figures
    python scale.py --difference A B                  of two files of predictions, relative to the largest

With --pipe the file comes through a pipe on the command's standard input.
"""

import resource
import subprocess
import sys
import time


def column(path):
    with open(path) as file:
        next(file)
        return [float(line.split(",")[0]) for line in file]


def main(words):
    if words[0] == "--difference":
        one, other = column(words[1]), column(words[2])
        assert len(one) == len(other)
        largest = max(map(abs, one))
        print(f"difference {max(abs(a - b) for a, b in zip(one, other)) / largest:e}")
        return
    pipe = words[1] if words[0] == "--pipe" else None
    command = words[words.index("--") + 1 :]
    begun = time.perf_counter()
    if pipe:
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as source:
            done = subprocess.run(command, stdin=source.stdout)
    else:
        done = subprocess.run(command, stdin=subprocess.DEVNULL)
    seconds = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(done.returncode)
    print(f"seconds {seconds:.3f}")
    print(f"processor {used.ru_utime + used.ru_stime:.3f}")
    print(f"peak_mb {used.ru_maxrss / 1024:.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
