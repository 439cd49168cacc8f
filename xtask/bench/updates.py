"""The paper's formula for further rows, in NumPy, SciPy and OpenBLAS: a carried inverse and Woodbury's identity.

    python updates.py DATA MODEL

The counterpart of crates/broadlearn/examples/sample_updates.rs, whose map is read from the file MODEL: 10 000 rows of MNIST
to 20 000, 5100 nodes, ridge 1e-5. The state of all rows and the inverse for the first ones are there when the clock
starts. Prints a name and a number per line. The number of threads is that of OPENBLAS_NUM_THREADS.
"""

import sys
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy.linalg import cho_factor, cho_solve

sys.path.insert(0, str(Path(__file__).parent))
from mnist import RIDGE, Network, peak_mb, tell  # noqa: E402

BASE, NEW, BLOCK = slice(0, 20_000), slice(20_000, 30_000), 2000


def main(folder, model):
    train, test = (np.load(Path(folder) / f"mnist_{part}.npz") for part in ("train", "test"))
    network = Network(load_file(model))
    u, y = states(network, train["X"][BASE]), np.eye(10)[train["y"]]
    r = u.T @ u
    r[np.diag_indices_from(r)] += RIDGE
    inverse = cho_solve(cho_factor(r, lower=True, overwrite_a=True), np.eye(network.nodes), overwrite_b=True)
    w = inverse @ (u.T @ y[BASE])
    del r, u

    u, y = states(network, train["X"][NEW]), y[NEW]
    begun = time.perf_counter()
    v = inverse @ u.T
    core = u @ v
    core[np.diag_indices_from(core)] += 1.0
    gain = cho_solve(cho_factor(core, lower=True, overwrite_a=True, check_finite=False), v.T).T
    w += gain @ (y - u @ w)
    inverse -= gain @ v.T
    tell("learning", time.perf_counter() - begun)
    u = states(network, test["X"])
    outputs, theirs = u @ w, u @ network.w
    tell("accuracy", 100.0 * np.mean(outputs.argmax(1) == test["y"]))
    tell("difference", np.abs(outputs - theirs).max())
    tell("peak_mb", peak_mb())


def states(network, x):
    u = np.empty((len(x), network.nodes))
    for start in range(0, len(x), BLOCK):
        network.state(x[start : start + BLOCK], {}, u[start:])
    return u


if __name__ == "__main__":
    main(*sys.argv[1:])
