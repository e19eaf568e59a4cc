"""``python -m bench [PART ...]``: run the parts, print the table, write results.json and RESULTS.md."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import report
from bench.machine import describe
from bench.measures import Measure
from core import clock

FOLDER = Path(__file__).parent
PARTS = tuple(
    sorted(
        path.stem for path in FOLDER.glob("[a-z]*.py") if "def measure(" in path.read_text(encoding="utf-8")
    )
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], help="only these (RESULTS.md stays as it is)"
    )
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        found = importlib.import_module(f"bench.{options.inside}").measure()
        print(json.dumps([measure.to_json() for measure in found]))
        return 0
    measures: list[Measure] = []
    failed = False
    for part in options.parts or PARTS:
        print(f"measuring {part} ...", file=sys.stderr)
        answer = run_part(part)
        failed = failed or answer is None
        measures += answer or []
    print(report.plain(measures))
    if not options.parts and not failed:
        write_results(measures)
    return 1 if failed else 0


def run_part(part: str) -> list[Measure] | None:
    """In a process and a home of its own; None when it failed, after saying so."""
    with tempfile.TemporaryDirectory(prefix="halo-bench-", ignore_cleanup_errors=True) as folder:
        done = subprocess.run(
            [sys.executable, "-m", "bench", "--inside", part],
            env={**os.environ, "HALO_HOME": f"{folder}/home", "TMPDIR": folder},
            cwd=FOLDER.parent,
            stdout=subprocess.PIPE,
            check=False,
        )
    if done.returncode:
        print(f"{part} failed (exit code {done.returncode}); what it said stands above.", file=sys.stderr)
        return None
    return [Measure.from_json(value) for value in json.loads(done.stdout.splitlines()[-1])]


def write_results(measures: list[Measure]) -> None:
    machine, day = describe(), clock.now().date().isoformat()
    value = {"day": day, "machine": machine, "measures": [measure.to_json() for measure in measures]}
    (FOLDER / "results.json").write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")
    remarks = (FOLDER / "notes.md").read_text(encoding="utf-8")
    (FOLDER / "RESULTS.md").write_text(report.markdown(measures, machine=machine, day=day, remarks=remarks))


if __name__ == "__main__":
    raise SystemExit(main())
