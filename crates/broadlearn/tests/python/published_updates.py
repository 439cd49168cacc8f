"""The pseudo-inverse and the ridge solution of a matrix that has grown, from the whole matrix at once.

    published_updates.py U.npy Y.npy PINV.npy W.npy RIDGE RIDGE_W.npy

Writes numpy.linalg.pinv(U), its product with Y, and the ridge solution by least squares of the stacked
system. Nothing here is updated: that is the point. Needs numpy.
"""

import sys

import numpy as np

u_path, y_path, pinv_path, w_path, ridge, ridge_path = sys.argv[1:]
u, y = np.load(u_path), np.load(y_path)
inverse = np.linalg.pinv(u, rcond=1e-11)
np.save(pinv_path, inverse)
np.save(w_path, inverse @ y)
stacked = np.vstack([u, np.sqrt(float(ridge)) * np.eye(u.shape[1])])
right = np.vstack([y, np.zeros((u.shape[1], y.shape[1]))])
np.save(ridge_path, np.linalg.lstsq(stacked, right, rcond=None)[0])
