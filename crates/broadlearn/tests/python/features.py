"""Sparse-autoencoder features by NumPy, step by step as in the original authors' recipe.

    features.py X.npy WEIGHTS.npy GROUPS Z.npy

X are scaled inputs, WEIGHTS the uniform random numbers of all groups side by side, one row for each
input and a last one for the constant 0.1. Z are the feature nodes of all groups.
"""

import sys

import numpy as np


def soft(v, threshold):
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0)


def feature_group(h1, we):
    a = h1 @ we
    low, high = a.min(axis=0), a.max(axis=0)
    a = 2 * (a - low) / (high - low) - 1
    # Lasso of A W ~ H1 by the alternating direction method of multipliers.
    l1 = np.linalg.inv(a.T @ a + np.eye(a.shape[1]))
    l2 = l1 @ a.T @ h1
    o = v = np.zeros_like(l2)
    for _ in range(50):
        c = l2 + l1 @ (o - v)
        o = soft(c + v, 1e-3)
        v = v + c - o
    t = h1 @ o.T
    low, high = t.min(axis=0), t.max(axis=0)
    return (t - low) / (high - low)


x, weights, groups = np.load(sys.argv[1]), np.load(sys.argv[2]), int(sys.argv[3])
h1 = np.hstack([x, np.full((len(x), 1), 0.1)])
np.save(sys.argv[4], np.hstack([feature_group(h1, we) for we in np.hsplit(weights, groups)]))
