"""Ridge regression as a least-squares problem, by SciPy.

    stacked_qr.py U.npy Y.npy W.npy RIDGE...

Solves [U; sqrt(RIDGE) I] W = [Y; 0] by Householder QR with column pivoting (LAPACK gelsy) and writes
the W of all ridges side by side. The normal equations, which square the condition number, do not
occur.
"""

import sys

import numpy as np
from scipy.linalg import lstsq

u, y = np.load(sys.argv[1]), np.load(sys.argv[2])
nodes = u.shape[1]
right = np.vstack([y, np.zeros((nodes, y.shape[1]))])
solutions = []
for ridge in map(float, sys.argv[4:]):
    stacked = np.vstack([u, np.sqrt(ridge) * np.eye(nodes)])
    w, _, rank, _ = lstsq(stacked, right, lapack_driver="gelsy", cond=1e-300)
    assert rank == nodes
    solutions.append(w)
np.save(sys.argv[3], np.hstack(solutions))
