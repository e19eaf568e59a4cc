"""The only writer of a status of runs and applies (invariant 1).

Ticker transitions answer whether they happened, a wrapper's raise ClaimLost, a person's raise Refused.
"""

from evolution.transitions._moves import RUN_EVENT
from evolution.transitions.applies import (
    PLANNING,
    RESTORING,
    begin_restoring,
    checkpoint,
    claim_apply,
    fail_apply,
    finish_apply,
    finish_rollback,
    mark_needs_person,
    refuse_rollback,
    resume_apply,
    resume_waiting,
    time_out_apply,
)
from evolution.transitions.apply_decisions import begin_rollback, cancel_apply, try_again
from evolution.transitions.held import beat, is_held, leave_reason, set_phase, write_process
from evolution.transitions.keeping import mark_archived, purge
from evolution.transitions.run_decisions import approve, cancel_run, reject, retry
from evolution.transitions.runs import (
    RunScore,
    await_review,
    claim_run,
    fail_run,
    pass_gates,
    skip_run,
    time_out_run,
)
from evolution.transitions.scenarios import (
    SCENARIO_EVENT,
    forget_scenarios,
    restore_scenario,
    retire_scenario,
)
from evolution.transitions.stale import beat_at, requeue

__all__ = [
    "PLANNING",
    "RESTORING",
    "RUN_EVENT",
    "SCENARIO_EVENT",
    "RunScore",
    "approve",
    "await_review",
    "beat",
    "beat_at",
    "begin_restoring",
    "begin_rollback",
    "cancel_apply",
    "cancel_run",
    "checkpoint",
    "claim_apply",
    "claim_run",
    "fail_apply",
    "fail_run",
    "finish_apply",
    "finish_rollback",
    "forget_scenarios",
    "is_held",
    "leave_reason",
    "mark_archived",
    "mark_needs_person",
    "pass_gates",
    "purge",
    "refuse_rollback",
    "reject",
    "requeue",
    "restore_scenario",
    "resume_apply",
    "resume_waiting",
    "retire_scenario",
    "retry",
    "set_phase",
    "skip_run",
    "time_out_apply",
    "time_out_run",
    "try_again",
    "write_process",
]
