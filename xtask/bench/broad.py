"""Other broad learners on MNIST, with as many nodes as `crates/broadlearn/examples/mnist.rs --nodes N`.

    python broad.py DATA tbls|rvfln [--nodes N] [--wrong SHARE]

DATA is the folder with mnist_train.npz and mnist_test.npz. 10 x 10 feature nodes and N enhancement nodes; inputs in
0 .. 1, everything else as the package comes. SHARE of the training rows get a wrong class, the same as in the
example. Prints a name and a number per line, as the example does. The number of threads is that of
OPENBLAS_NUM_THREADS.

tbls seeds its generator again for every group if it is given a seed, which makes all groups the same; it gets none.
"""

import argparse
import resource
import time
import warnings
from pathlib import Path

import numpy as np


def tbls(nodes):
    from tbls import BroadLearningSystem

    return BroadLearningSystem(
        n_feature_groups=10,
        n_feature_nodes_per_group=10,
        n_enhancement_groups=1,
        n_enhancement_nodes_per_group=nodes,
    )


def rvfln(nodes):
    from rvfln.bls import BLSClassifier

    return BLSClassifier(n_z=10, n_z_features=10, n_h=nodes)


PACKAGES = {"tbls": tbls, "rvfln": rvfln}


def mislabelled(classes, share):
    """As the example's `mislabel`."""
    state, classes = 1, classes.astype(int)

    def draw():
        nonlocal state
        state = state * 48271 % 2147483647
        return state / 2147483647.0

    for row in range(len(classes)):
        if draw() < share:
            classes[row] = (classes[row] + 1 + int(9.0 * draw())) % 10
    return classes


def main(options):
    warnings.filterwarnings("ignore")
    np.random.seed(0)  # what both draw from
    train, test = (np.load(options.data / f"mnist_{part}.npz") for part in ("train", "test"))
    x, classes = train["X"] / 255.0, mislabelled(train["y"], options.wrong)
    model = PACKAGES[options.package](options.nodes)
    begun = time.perf_counter()
    model.fit(x, classes)
    print(f"fitting {time.perf_counter() - begun:.3f}", flush=True)
    x = test["X"] / 255.0
    begun = time.perf_counter()
    found = model.predict(x)
    print(f"testing {time.perf_counter() - begun:.3f}")
    print(f"accuracy {100.0 * np.mean(np.ravel(found) == test['y']):.2f}")
    print(f"peak_mb {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("package", choices=PACKAGES)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--wrong", type=float, default=0.0)
    main(parser.parse_args())
