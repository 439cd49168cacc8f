"""Predicts with a broadlearn model file, from docs/model-format.md and nothing else.

    predict.py MODEL TABLE.csv

Needs numpy and safetensors. Writes one line per row: the numbers of a regression, or the class and
then the outputs (or probabilities) of a classification, separated by tabs.
"""

import csv
import hashlib
import json
import struct
import sys

import numpy as np
from safetensors.numpy import load

MISSING = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"}


def verified(path):
    """The bytes of the file, after checking its checksum; and its metadata."""
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    metadata = json.loads(data[8:8 + length])["__metadata__"]
    start = data.index(b'"checksum":"') + len(b'"checksum":"')
    zeroed = data[:start] + b"0" * 64 + data[start + 64:]
    if hashlib.sha256(zeroed).hexdigest() != metadata["checksum"]:
        sys.exit("the checksum does not match")
    if metadata["format"] != "broadlearn" or metadata["format_version"] != "4":
        sys.exit("not a broadlearn model of format version 4")
    return data, json.loads(metadata["model"])


def number(text):
    """The number that a text spells, or None."""
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def encoded(rows, schema):
    """The model's inputs, one row per row of the table."""
    extra = {text.strip() for text in schema.get("missing", [])}
    extra_numbers = {number(text) for text in extra} - {None}

    def is_missing(text):
        value = number(text)
        return text in MISSING or text in extra or value in extra_numbers or value != value

    columns = []
    for column in schema["inputs"]:
        cells = [row[column["name"]].strip() for row in rows]
        missing = np.array([is_missing(cell) for cell in cells])
        encoding = column["encoding"]
        if encoding["as"] == "number":
            words = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
            values = np.full(len(cells), encoding["fill"])
            for i, cell in enumerate(cells):
                if not missing[i]:
                    word = words.get(cell.lower()) if column["kind"] == "boolean" else None
                    values[i] = float(cell) if word is None else word
            columns.append(values)
            if encoding["indicator"]:
                columns.append(missing.astype(float))
        else:
            for level in encoding["levels"]:
                columns.append(np.array([not m and c == level for c, m in zip(cells, missing)], float))
            if encoding["missing"]:
                columns.append(missing.astype(float))
    return np.column_stack(columns)


def scaled(x, kind, tensors):
    if kind in ("columns", "tamed"):
        centre, factor, offset = (tensors[f"input_scaler.{part}"] for part in ("centre", "factor", "offset"))
        z = (x - centre) * factor + offset
        far = (np.abs(z) > 5) & (kind == "tamed")
        return np.where(far, np.sign(z) * np.minimum(5 + np.log(np.maximum(np.abs(z) - 4, 1)), 8), z)
    mean, deviation = x.mean(axis=1, keepdims=True), x.std(axis=1, keepdims=True)
    constant = deviation <= 4 * np.finfo(float).eps * np.abs(mean)
    return np.where(constant, 0.0, (x - mean) / np.where(constant, 1.0, deviation))


ACTIVATIONS = {
    "tanh": np.tanh,
    "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "relu": lambda v: np.maximum(v, 0),
    "identity": lambda v: v,
}


def convolution(x, group, part):
    """Mean responses of patches over regions of an image, scaled."""
    shape = [group["image"][side] for side in ("height", "width", "channels")]
    images = x.reshape(len(x), *shape)
    (high, wide), (down, across) = group["patch"], group["pools"]
    windows = np.lib.stride_tricks.sliding_window_view(images, (high, wide), axis=(1, 2))
    windows = np.moveaxis(windows, 3, -1)  # image, row, column, then the patch with its channels last
    rows, columns = windows.shape[1:3]
    filters = part("filters")
    responses = np.maximum(windows.reshape(len(x), rows, columns, -1) @ filters, 0)
    pooled = np.empty((len(x), filters.shape[1], down, across))
    for a in range(down):
        for b in range(across):
            region = responses[:, a * rows // down:(a + 1) * rows // down, b * columns // across:(b + 1) * columns // across]
            pooled[:, :, a, b] = region.mean(axis=(1, 2))
    return (pooled.reshape(len(x), -1) - part("centre")) * part("factor")


def recurrent(x, group, part):
    """What nodes in cells of ten are after they have read the inputs step by step."""
    weights, heard, bias = part("weights"), part("recurrent"), part("bias")
    nodes = len(bias)
    v = np.zeros((nodes, nodes))
    for j in range(nodes):
        cell = j - j % 10
        for place in range(j % 10 + 1):
            v[cell + place, j] = heard[place, j]
    h = np.zeros((len(x), nodes))
    for time in range(0, x.shape[1], group["step"]):
        h = ACTIVATIONS[group["activation"]](x[:, time:time + group["step"]] @ weights + h @ v + bias)
    return h


def state(x, groups, tensors, prefix):
    """U of a member for scaled inputs."""
    nodes, features = [], []
    for index, group in enumerate(groups):
        if group["kind"] == "constant":
            nodes.append(np.ones((len(x), 1)))
            continue
        part = lambda name: tensors[f"{prefix}group.{index}.{name}"]
        if group["kind"] == "inputs":
            values = x
        elif group["kind"] == "relevant":
            values = x * part("relevance")
        elif group["kind"] == "convolution":
            values = convolution(x, group, part)
        elif group["kind"] == "fuzzy":
            centres = part("centres")
            distances = ((x[:, :, None] - centres[None]) ** 2).sum(axis=1)
            shares = np.exp(-(distances - distances.min(axis=1, keepdims=True)) / (2 * part("width") ** 2))
            shares /= shares.sum(axis=1, keepdims=True)
            values = shares * (x @ part("weights") + part("bias"))
        elif group["kind"] == "recurrent":
            values = recurrent(x, group, part)
        else:
            reads = group["features"]
            source = x if reads is None else np.hstack(features[reads[0]:reads[1]])
            values = source @ tensors[f"{prefix}group.{index}.weights"]
            values = values + tensors[f"{prefix}group.{index}.bias"]
            values = ACTIVATIONS[group["activation"]](values)
        nodes.append(values)
        if group["kind"] in ("inputs", "relevant", "convolution", "fuzzy"):
            features.append(values)
        elif group["kind"] == "dense" and group["features"] is None and not group.get("straight"):
            features.append(values)
    return np.hstack(nodes)


def main(model_path, table_path):
    data, model = verified(model_path)
    tensors = load(data)
    with open(table_path, newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    x = encoded(rows, model["schema"])
    assert x.shape[1] == model["inputs"]
    x = scaled(x, model["input_scaler"], tensors)
    members = [("", model["groups"])]
    for place, member in enumerate(model.get("members", []), 1):
        members.append((f"members.{place}.", member["groups"]))
    outputs = np.mean([
        state(x, groups, tensors, prefix) @ tensors[f"{prefix}output.weights"]
        for prefix, groups in members
    ], axis=0)
    target = model["schema"]["target"]
    if target["task"] == "regression":
        factor = tensors["target_scaler.factor"]
        width = np.where(factor > 0, 1 / np.where(factor > 0, factor, 1), 0)
        outputs = (outputs - tensors["target_scaler.offset"]) * width + tensors["target_scaler.centre"]
    if model.get("discriminant"):
        logits = np.column_stack([outputs, np.ones(len(outputs))]) @ tensors["discriminant"]
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        outputs = shares / shares.sum(axis=1, keepdims=True)
    for row in outputs:
        fields = [repr(float(value)) for value in row]
        if target["task"] == "classification":
            fields.insert(0, target["classes"][int(np.argmax(row))])
        print("\t".join(fields))


main(*sys.argv[1:])
