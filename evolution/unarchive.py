"""An archived run's folder comes back before the run starts over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.db import transaction

from evolution import zips
from evolution.errors import Refused
from evolution.folder_lock import FolderBusy, holding
from evolution.models import EvolutionRun
from evolution.zips import Step, ZipDamaged

WAIT_SEC = 10.0


@contextmanager
def unarchived(run: EvolutionRun, *, step: Step = lambda name: None) -> Iterator[None]:
    """Keep the archive pass off while the caller moves ``run``, its folder being there again.

    The zip goes once the move is committed; a folder whose move was refused is the next pass's to remove. Call
    it outside of a transaction: its lock has to last until the commit. Raises Refused ``archive_busy``,
    ``archive_missing``, ``archive_damaged`` or ``not_unpacked``.
    """
    if run.archived_at is None:
        yield
        return
    paths = run.workspace.paths.evolution
    with ExitStack() as stack:
        try:
            stack.enter_context(holding(paths.folder_lock("run", run.pk), wait_sec=WAIT_SEC))
        except FolderBusy as error:
            raise Refused(
                "archive_busy", f"The files of {run} are being archived; try again in a moment."
            ) from error
        except OSError as error:
            raise Refused(
                "not_unpacked", f"{run} can't start over: its archive can't be reached: {error}."
            ) from error
        run.refresh_from_db(fields=["archived_at"])
        if run.archived_at is not None:
            _unpack(run, step)
        yield
        zip_file = paths.archived("run", run.pk)
        transaction.on_commit(lambda: zip_file.unlink(missing_ok=True))


def _unpack(run: EvolutionRun, step: Step) -> None:
    paths = run.workspace.paths.evolution
    zip_file = paths.archived("run", run.pk)
    try:
        zips.unpack(zip_file, paths.run(run.pk), step=step)
    except FileNotFoundError as error:
        raise Refused(
            "archive_missing", f"{run} can't start over: its files were archived and {zip_file} is gone."
        ) from error
    except ZipDamaged as error:
        raise Refused(
            "archive_damaged", f"{run} can't start over: {zip_file} can't be unpacked ({error})."
        ) from error
    except OSError as error:
        raise Refused(
            "not_unpacked", f"{run} can't start over: {zip_file} could not be unpacked: {error}."
        ) from error
