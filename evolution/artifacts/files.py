"""Where each artifact of an attempt lies; no other module joins these names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BASE_MANIFEST = "base.json"


@dataclass(frozen=True, slots=True)
class AttemptFiles:
    """The files of one attempt of a run or an apply. ``folder`` is that attempt's own."""

    folder: Path

    @property
    def attempt(self) -> int:
        return int(self.folder.name)

    @property
    def base(self) -> Path:
        """The ``.halo`` folder as it was live at the claim."""
        return self.folder / "base" / ".halo"

    @property
    def sandbox(self) -> Path:
        """The same folder with the draft in it."""
        return self.folder / "sandbox" / ".halo"

    @property
    def base_manifest(self) -> Path:
        return self.folder / BASE_MANIFEST

    @property
    def context_manifest(self) -> Path:
        """Hashes of what was copied beside ``.halo`` for reading only."""
        return self.folder / "base-context.json"

    @property
    def hidden(self) -> Path:
        """Base versions of global files that the draft overrides; written when the attempt is reduced."""
        return self.folder / "base" / "global"

    @property
    def reduced(self) -> Path:
        """The changed paths, written before everything else is taken out of base and sandbox."""
        return self.folder / "reduced.json"

    @property
    def differs(self) -> Path:
        """Where the live surface at the claim isn't what was frozen."""
        return self.folder / "context-differs.json"

    @property
    def patch(self) -> Path:
        return self.folder / "patch.md"

    @property
    def skip(self) -> Path:
        return self.folder / ".skip.md"

    @property
    def baseline(self) -> Path:
        return self.folder / "baseline.md"

    @property
    def dry_run_output(self) -> Path:
        return self.folder / "dry-run-output.txt"

    @property
    def control_output(self) -> Path:
        return self.folder / "control-output.txt"

    def dry_run_failure(self, number: int) -> Path:
        return self.folder / f"dry-run-fail-{number}.log"

    def score_sample(self, number: int) -> Path:
        return self.folder / f"score.{number}.json"

    @property
    def score(self) -> Path:
        return self.folder / "score.json"

    @property
    def verdict(self) -> Path:
        return self.folder / "auto-apply.json"

    @property
    def child_log(self) -> Path:
        return self.folder / "sub-cli.log"

    @property
    def sessions(self) -> Path:
        return self.folder / "sessions"

    def session(self, name: str) -> Path:
        """The folder for the logs of one evaluation session."""
        return self.sessions / name

    @property
    def apply_log(self) -> Path:
        return self.folder / "apply.log"

    @property
    def abort(self) -> Path:
        return self.folder / "ABORT.md"

    def regress(self, run_id: str) -> AttemptFiles:
        """The folder of one source run's regression: output and scores under the same names."""
        return AttemptFiles(self.folder / "regress" / run_id)

    def kept_scenario(self, scenario_id: str) -> AttemptFiles:
        """The same for a scenario that an earlier run left."""
        return AttemptFiles(self.folder / "regress" / f"scenario-{scenario_id}")

    @property
    def kept_scenarios(self) -> Path:
        """How the scenarios of earlier runs went, or why they were not run."""
        return self.folder / "regress" / "kept.json"

    @property
    def landed_answer(self) -> Path:
        """Of a kept scenario: the answer that it is held to."""
        return self.folder / "landed-answer.txt"
