"""An archive of trials as `numpy.savez_compressed` writes it, for `tests/inputs.rs`; needs numpy.

    python trials.py

Sample k of channel c of trial i is 100 i + 10 c + k, times 0.5; X_2 is 1000 more and in Fortran order.
"""

import pathlib

import numpy as np

i, c, k = np.ogrid[:3, :2, :8]
values = 100 * i + 10 * c + k
np.savez_compressed(
    pathlib.Path(__file__).parent / "trials.npz",
    X_1=values.astype("int16"), y_1=np.array([1, 2, 1], "uint8"),
    X_2=np.asfortranarray(values.astype(">f4") + 1000), y_2=np.array(["left", "right", "left"]),
    fs=250, scale_uV=0.5, channels=np.array(["C3", "C4"]),
)
