"""The phases of a run and of an apply: they know their folder and their sandbox, no row and no status.

The wrapper calls, for a run:

    sandbox.prepare_run(ctx)
    draft.draft(ctx, given)                             PhaseSkipped, PhaseFailed
    dry_run.dry_run(ctx, draft, fix=partial(draft.fix, ctx, given))
    dry_run.control(ctx, dry.draft)                     or Control() when switched off
    score.score(ctx, dry, control, samples=n)
    sandbox.verify_untouched(ctx)
    gates.decide(GateInput(changes=sandbox.classified(ctx), control_failure=control.failure, ...))
    artifacts.verdict.write_verdict(folder, verdict, observation)

and for an apply: prepare_apply, merge.merge, regress.regress, ratchet.ratchet, verify_untouched, then snapshot and
publish.
``artifacts.patch.read_observation`` tells of a larger observation however the draft ended;
``sandbox.reduce`` follows when the row is final.
"""
