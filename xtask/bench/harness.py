"""What peers.py, audit.py, intervals.py and defaults.py share: one core for everybody, options, running broadlearn,
output.

Import it before NumPy: libraries read the number of threads when they are loaded.
"""

import os

for variable in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "RAYON"):
    os.environ[variable + "_NUM_THREADS"] = "1"

import argparse  # noqa: E402
import contextlib  # noqa: E402
import importlib.metadata  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
import resource  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from pathlib import Path  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
# The seed of every method that wants one.
SEED = 0
LIGHTGBM = {"n_jobs": 1, "random_state": SEED, "verbose": -1}

# Runs that have not converged, columns without names: what defaults say is part of the comparison.
warnings.filterwarnings("ignore")
os.environ["PYTHONWARNINGS"] = "ignore"


def arguments(description, name, sets, quick, splits=None):
    """The options of these benchmarks. `sets`: in the order of the table; `quick`: those of --quick; `splits`:
    how many unless --splits says it, an option of those that give a number here."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--binary", type=Path, default=ROOT / "target/release/broadlearn", help="the broadlearn command"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=ROOT / "data",
        help="where data sets are looked for (after it: BROADLEARN_DATA), and missing ones are put",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / f"target/bench/{name}.md",
        help="the table, in Markdown; every figure goes into a .json file beside it",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one split or seed, and some small sets unless --sets names others",
    )
    parser.add_argument("--sets", nargs="+", metavar="SET", choices=sets, help="these sets only")
    parser.add_argument(
        "--reuse",
        action="store_true",
        help="take from the .json file what is there of the other methods, and run only broadlearn and the rest",
    )
    if splits is not None:
        parser.add_argument(
            "--splits", type=int, metavar="N", help=f"splits of each set, {splits} unless given or --quick"
        )
    options = parser.parse_args()
    if splits is not None:
        if options.splits is None:
            options.splits = 1 if options.quick else splits
        elif options.splits < 1:
            parser.error("--splits: at least 1")
    if not options.binary.is_file():
        parser.error(f"no file {options.binary}: cargo build --release makes it; or name one with --binary")
    options.binary = options.binary.resolve()
    wanted = options.sets or (quick if options.quick else sets)
    options.sets = [name for name in sets if name in wanted]
    return options


def tell(text):
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- broadlearn


def broadlearn(binary, *words):
    """Runs the command on one thread; what it printed, and its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(binary), *map(str, words), "--threads", "1", "-q"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}")
    return done.stdout, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


@contextlib.contextmanager
def workplace():
    with tempfile.TemporaryDirectory(prefix="broadlearn-bench-") as folder:
        yield Path(folder)


def processor_seconds(work, *values):
    """What the function returns, and this process's processor seconds meanwhile."""
    begun = time.process_time()
    result = work(*values)
    return result, time.process_time() - begun


# ---------------------------------------------------------------- results


class Records:
    """One figure or some for each key (a tuple of texts and numbers), kept in a JSON file after each set."""

    def __init__(self, options, packages, mine="broadlearn"):
        self.path = options.out.with_suffix(".json")
        self.head = {
            "python": platform.python_version(),
            "packages": {name: importlib.metadata.version(name) for name in packages},
        }
        self.held, self.mine = {}, mine
        if options.reuse and self.path.is_file():
            old = json.loads(self.path.read_text())
            if {key: old[key] for key in self.head} != self.head:
                sys.exit(f"{self.path} is from other versions: {old['packages']}; leave --reuse away")
            self.held = {tuple(record["key"]): record["value"] for record in old["records"]}
            self.held = {key: value for key, value in self.held.items() if mine not in key}
        self.head["broadlearn"] = broadlearn(options.binary, "--version")[0].strip()
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def get(self, key, work):
        """The value of this key, by the function unless it is there."""
        if key not in self.held:
            self.held[key] = work()
        return self.held[key]

    def save(self, summary=None):
        records = [{"key": list(key), "value": value} for key, value in self.held.items()]
        text = json.dumps({**self.head, "summary": summary, "records": records}, indent=1)
        self.path.write_text(text + "\n")


def count(number, thing):
    return f"{number} {thing}" + ("" if number == 1 else "s")


def markdown(header, rows):
    lines = [header, ["---"] * len(header)] + rows
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def finish(options, records, text, summary):
    """Everything to stdout and into the files."""
    versions = ", ".join(f"{name} {version}" for name, version in records.head["packages"].items())
    text += f"\n{records.head['broadlearn']}; {versions}; Python {records.head['python']}.\n"
    records.save(summary)
    options.out.write_text(text)
    print(text, end="")
    tell(f"written: {options.out}, {records.path}")
