"""REST: runs, applies, kept scenarios, and every decision on them: each is one call of the verb the pages call."""

from ninja import Router

from evolution.api import applies, runs, scenarios

router = Router(tags=["evolution"])
router.add_router("", runs.router)
router.add_router("", applies.router)
router.add_router("", scenarios.router)
