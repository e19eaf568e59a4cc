"""REST: runs and applies, and every decision on them. Each operation is one call of the verb the pages call."""

from ninja import Router

from evolution.api import applies, runs

router = Router(tags=["evolution"])
router.add_router("", runs.router)
router.add_router("", applies.router)
