"""Recordings written to the specifications of GDF and EDF+, and what MNE reads from them.

    python recordings.py        needs `pip install -r requirements.txt`

Writes the small files beside it, has MNE read them, insists that MNE finds what was written, and
keeps MNE's numbers in recordings.json (in the unit of the file: MNE converts microvolts to volts).
"""

import json
import pathlib
import struct
import warnings

import mne
import numpy as np

FOLDER = pathlib.Path(__file__).parent
RATE, RECORDS = 50, 2
EVENTS = [(1, 768, 0, 0), (11, 769, 0, 25), (41, 768, 0, 0), (41, 1023, 0, 10), (51, 770, 2, 30)]
# Codes of the specification.
TYPES = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<i8", 8: "<u8", 16: "<f4", 17: "<f8"}
rng = np.random.default_rng(3)


def samples(code, shape):
    kind = np.dtype(TYPES[code])
    if kind.kind == "f":
        return rng.normal(0, 20, shape).astype(kind)
    info = np.iinfo(kind)
    # MNE computes in doubles; larger whole numbers have no place in them. The lowest one means "missing".
    low, high = max(info.min + 1, -(2**40)), min(info.max, 2**40)
    return rng.integers(low, high, shape, endpoint=True).astype(kind)


def text(value, size):
    return value.encode().ljust(size)


def gdf(version, codes, mode, names):
    """Channels of the types `codes`, in microvolts; data record by record."""
    count = len(codes)
    data = [samples(code, (RECORDS, RATE)) for code in codes]
    limits = []
    for code in codes:
        kind = np.dtype(TYPES[code])
        if kind.kind == "f":
            limits.append((-100.0, 100.0, -100, 100))
        else:
            info = np.iinfo(kind)
            limits.append((-500.0, 500.0, max(info.min, -(2**40)), min(info.max, 2**40)))
    old = version.startswith("GDF 1")
    head = text(version, 8)
    if old:
        head += text("X broadlearn", 80) + text("made up", 80) + b"2020010203040500"
        head += struct.pack("<q", 256 * (count + 1)) + bytes(24) + bytes(20)
        head += struct.pack("<qIII", RECORDS, 1, 1, count)
    else:
        head += text("X broadlearn", 66) + bytes(10) + bytes(4) + text("made up", 64) + bytes(16)
        head += struct.pack("<QQ", 0, 0) + struct.pack("<H", count + 1) + bytes(6) + bytes(8) + bytes(6)
        head += bytes(6) + bytes(24) + struct.pack("<qIIHH", RECORDS, 1, 1, count, 0)
    assert len(head) == 256
    head += b"".join(text(name, 16) for name in names[:count]) + bytes(80 * count)
    if old:
        head += text("uV", 8) * count
    else:
        head += bytes(6 * count) + struct.pack("<H", 4275) * count
    for place in (0, 1):
        head += b"".join(struct.pack("<d", limit[place]) for limit in limits)
    for place in (2, 3):
        head += b"".join(struct.pack("<q" if old else "<d", limit[place]) for limit in limits)
    head += bytes(80 * count)
    head += struct.pack("<i", RATE) * count + b"".join(struct.pack("<i", code) for code in codes) + bytes(32 * count)
    assert len(head) == 256 * (count + 1)
    body = b"".join(data[channel][record].tobytes() for record in range(RECORDS) for channel in range(count))
    table = struct.pack("<B", mode)
    if old:
        table += RATE.to_bytes(3, "little") + struct.pack("<I", len(EVENTS))
    else:
        table += len(EVENTS).to_bytes(3, "little") + struct.pack("<f", RATE)
    columns = [("<I", 0), ("<H", 1)] + ([("<H", 2), ("<I", 3)] if mode == 3 else [])
    for kind, place in columns:
        table += b"".join(struct.pack(kind, event[place]) for event in EVENTS)
    values = []
    for channel, (low, high, lowest, highest) in zip(data, limits):
        scale = (high - low) / (float(highest) - float(lowest))
        values.append((channel.astype(float).ravel() - float(lowest)) * scale + low)
    return head + body + table, values


def edf(plus, names):
    """EDF, or EDF+ with annotations."""
    count = len(names) + plus
    size = 60
    data = rng.integers(-2048, 2047, (RECORDS, len(names), RATE)).astype("<i2")
    head = text("0", 8) + text("X X X X", 80) + text("Startdate X X X X", 80) + b"01.01.2003.04.05"
    head += text(str(256 * (count + 1)), 8) + text("EDF+C" if plus else "", 44)
    head += text(str(RECORDS), 8) + text("1", 8) + text(str(count), 4)
    labels = names + ["EDF Annotations"] * plus
    fields = [(16, labels), (80, [""] * count), (8, ["uV"] * len(names) + [""] * plus), (8, ["-204.8"] * len(names) + ["-1"] * plus),
              (8, ["204.7"] * len(names) + ["1"] * plus), (8, ["-2048"] * len(names) + ["-32768"] * plus),
              (8, ["2047"] * len(names) + ["32767"] * plus), (80, [""] * count),
              (8, [str(RATE)] * len(names) + [str(size)] * plus), (32, [""] * count)]
    head += b"".join(text(value, width) for width, values in fields for value in values)
    body = b""
    lists = [b"+0\x14\x14\x00+0.5\x150.25\x14T1\x14\x00", b"+1\x14\x14\x00+1.1\x14T2\x14again\x14\x00+1.5\x140\xc2\xb5\x14\x00"]
    for record in range(RECORDS):
        body += data[record].tobytes()
        if plus:
            body += lists[record].ljust(2 * size, b"\0")
    scale = (204.7 + 204.8) / (2047 + 2048)
    values = [(data[:, channel].ravel().astype(float) + 2048) * scale - 204.8 for channel in range(len(names))]
    return head + body, values


def main():
    warnings.simplefilter("ignore")
    mne.set_log_level("error")
    names = ["EEG:C3", "EEG:Cz", "EEG:C4", "EOG:left"]
    kept = {}
    files = {}
    for code, kind in TYPES.items():
        label = np.dtype(kind).name
        files[f"gdf1_{label}.gdf"] = gdf("GDF 1.25", [code] * 2, 1, names)
        files[f"gdf2_{label}.gdf"] = gdf("GDF 2.20", [code] * 2, 3, names)
    files["gdf1_mode3.gdf"] = gdf("GDF 1.25", [3] * 3, 3, names)
    files["gdf2_mode1.gdf"] = gdf("GDF 2.20", [3] * 3, 1, names)
    files["plain.edf"] = edf(False, names[:3])
    files["plus.edf"] = edf(True, names[:2])
    for name, (content, values) in files.items():
        path = FOLDER / name
        path.write_bytes(content)
        raw = (mne.io.read_raw_gdf if name.endswith("gdf") else mne.io.read_raw_edf)(path, preload=True)
        found = raw.get_data() * 1e6
        for channel, expected in zip(found, values):
            np.testing.assert_allclose(channel, expected, rtol=0, atol=1e-9 * np.abs(expected).max(), err_msg=name)
        assert raw.ch_names == names[: len(values)] and raw.info["sfreq"] == RATE
        notes = raw.annotations
        if name.endswith("gdf"):
            assert [(round(o * RATE) + 1, int(d)) for o, d in zip(notes.onset, notes.description)] == [e[:2] for e in EVENTS]
        kept[name] = {"channels": raw.ch_names, "rate": raw.info["sfreq"], "samples": found.tolist(),
                      "events": [[float(o), str(d)] for o, d in zip(notes.onset, notes.description)]}
    # Legal, but not for MNE: each channel of another type. What was written is what is expected.
    content, values = gdf("GDF 2.20", [3, 17, 1, 6], 3, names)
    (FOLDER / "gdf2_mixed.gdf").write_bytes(content)
    kept["gdf2_mixed.gdf"] = {"channels": names, "rate": float(RATE), "samples": [list(v) for v in values],
                              "events": [[(e[0] - 1) / RATE, str(e[1])] for e in EVENTS]}
    (FOLDER / "recordings.json").write_text(json.dumps(kept) + "\n")


main()
