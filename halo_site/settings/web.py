"""The web process: slim plus admin, sessions, static files and channels."""

from __future__ import annotations

import os

from halo_site.settings.slim import *  # noqa: F403 - a settings module extends another
from halo_site.settings.slim import INSTALLED_APPS as SLIM_APPS
from halo_site.settings.slim import PROJECT_ROOT

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    *SLIM_APPS,
    "channels",
    "django_q",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "halo_site.urls"
ASGI_APPLICATION = "halo_site.asgi.application"
ALLOWED_HOSTS = [
    host for host in os.environ.get("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]").split(",") if host
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PROJECT_ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True

CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

# The scheduler only ever calls things that are safe to repeat and to miss (ticker, archive).
Q_CLUSTER = {
    "name": "halo",
    "orm": "default",
    "workers": 1,
    "timeout": 120,
    "retry": 180,
    "max_attempts": 1,
    "ack_failures": True,
    "catch_up": False,
    "poll": 0.2,
    "save_limit": 100,
    "label": "Background tasks",
}
