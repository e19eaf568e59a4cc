"""The suite: a home of its own that is thrown away; ``HALO_TEST_DATABASE_URL`` moves it to PostgreSQL."""

from __future__ import annotations

import os
import tempfile

os.environ["HALO_HOME"] = tempfile.mkdtemp(prefix="halo-test-home-")
os.environ.pop("DATABASE_URL", None)

from halo_site.settings.web import *  # noqa: F403 - the environment has to be set first

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EVOLUTION_TICK_ON_COMMIT = False
