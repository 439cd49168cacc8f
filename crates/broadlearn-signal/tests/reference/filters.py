"""Filters and spectra by SciPy, behind `tests/scipy.rs`; needs `pip install -r requirements.txt`.

    python filters.py > filters.json

One signal for all: two waves, a trend, an offset, and noise. Every case says how much of it is used.
"""

import json

import numpy as np
from scipy import signal

RATE = 250.0
rng = np.random.default_rng(7)
t = np.arange(400) / RATE
x = 40 + 5 * t + np.sin(2 * np.pi * 10 * t) + 0.5 * np.sin(2 * np.pi * 52 * t) + rng.normal(size=t.size)
x = np.round(x, 6)


def padding(sos):
    """The default of sosfiltfilt."""
    taps = 2 * len(sos) + 1 - min((sos[:, 2] == 0).sum(), (sos[:, 5] == 0).sum())
    return int(3 * taps)


def filters():
    cases = []
    for order in range(1, 9):
        for kind, corner in [("lowpass", [35]), ("highpass", [8]), ("bandpass", [8, 35]), ("bandstop", [45, 57])]:
            sos = signal.butter(order, corner if len(corner) > 1 else corner[0], kind, fs=RATE, output="sos")
            pad = padding(sos)
            try:
                signal.sosfiltfilt(sos, x[:pad])
                raise AssertionError("SciPy refuses so short a signal")
            except ValueError:
                pass
            outputs = []
            # The shortest that is allowed, and an odd length.
            for length in (pad + 1, 101):
                outputs.append({"length": length, "both_ways": list(signal.sosfiltfilt(sos, x[:length]))})
            cases.append({"order": order, "kind": kind, "corner": corner, "sos": sos.tolist(), "padding": pad,
                          "once": list(signal.sosfilt(sos, x[:20])), "outputs": outputs})
    # Corners near the ends of the spectrum, and another rate.
    for order, kind, corner, rate in [(4, "bandpass", [0.5, 100], 256.0), (2, "bandpass", [9.9, 10.3], 128.0),
                                      (5, "highpass", [0.1], 1000.0), (3, "lowpass", [124.5], 250.0),
                                      (6, "bandstop", [49, 51], 512.0)]:
        sos = signal.butter(order, corner if len(corner) > 1 else corner[0], kind, fs=rate, output="sos")
        cases.append({"order": order, "kind": kind, "corner": corner, "rate": rate, "sos": sos.tolist(),
                      "padding": padding(sos), "once": list(signal.sosfilt(sos, x[:20])),
                      "outputs": [{"length": 131, "both_ways": list(signal.sosfiltfilt(sos, x[:131]))}]})
    return cases


def spectra():
    cases = []
    for window in ("hann", "hamming", "boxcar"):
        for length, segment, overlap, nfft in [(400, 62, 31, 256), (301, 64, 0, 64), (301, 63, 31, 63), (63, 63, 10, 101),
                                               (400, 1, 0, 8), (255, 100, 99, 128)]:
            f, p = signal.welch(x[:length], RATE, window, segment, overlap, nfft, detrend="constant",
                                scaling="density", average="mean")
            cases.append({"window": window, "length": length, "segment": segment, "overlap": overlap, "nfft": nfft,
                          "frequencies": list(f), "power": list(p)})
    return cases


print(json.dumps({"rate": RATE, "signal": list(x), "filters": filters(), "spectra": spectra()}))
