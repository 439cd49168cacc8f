"""The paper's C-BLS iteration in NumPy on the networks of `crates/broadlearn/examples/small_fits.rs`.

    python small.py FOLDER [REPEATS]

FOLDER holds what the example wrote: U, the targets and the library's outputs. The ridge solution, then in each step
weights, weighted equations, Cholesky factor, until the outputs change by less than 1e-6. U is there when the clock starts.
Prints a name and a number per line: the least milliseconds, steps, and the largest difference of an output.
"""

import sys
import time
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk

RIDGE, SIGMA, TOLERANCE, MOST_STEPS = 2.0**-20, 0.3, 1e-6, 200


def robust_fit(u, y):
    w = ridge_fit(u, y, 1.0)
    outputs = u @ w
    for step in range(1, MOST_STEPS + 1):
        weights = np.exp(-np.square(y - outputs).sum(1) / (2.0 * SIGMA**2))[:, None]
        w = ridge_fit(u, y, weights)
        new = u @ w
        change = np.linalg.norm(new - outputs) / np.linalg.norm(new)
        outputs = new
        if change <= TOLERANCE:
            break
    return outputs, step


def ridge_fit(u, y, weights):
    r = dsyrk(1.0, (np.sqrt(weights) * u).T, lower=1)
    r[np.diag_indices_from(r)] += RIDGE
    return cho_solve(cho_factor(r, lower=True, overwrite_a=True, check_finite=False), u.T @ (weights * y))


def main(folder, repeats=3):
    for path in sorted(Path(folder).glob("*.f64")):
        name, shape, _ = path.name.split(".")
        rows, nodes, outputs = map(int, shape.split("x"))
        u, y, theirs = np.split(np.fromfile(path).reshape(-1, rows).T, [nodes, nodes + outputs], axis=1)
        u = np.ascontiguousarray(u)
        least = np.inf
        for _ in range(int(repeats)):
            begun = time.perf_counter()
            found, steps = robust_fit(u, y)
            least = min(least, time.perf_counter() - begun)
        print(f"{name}.robust {1e3 * least:.4f}")
        print(f"{name}.steps {steps}")
        print(f"{name}.difference {np.abs(found - theirs).max():.3g}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
