"""The web process: slim plus admin, sessions, static files and channels."""

from __future__ import annotations

from datetime import timedelta

from csp.constants import NONE, SELF, UNSAFE_INLINE

from halo_site.env import read_bool, read_names
from halo_site.settings.admin_look import UNFOLD as UNFOLD
from halo_site.settings.slim import *  # noqa: F403 - a settings module extends another
from halo_site.settings.slim import INSTALLED_APPS as SLIM_APPS
from halo_site.settings.slim import PROJECT_ROOT

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",  # before the admin, whose templates it replaces
    "halo_site.admin_app.HaloAdminConfig",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "channels",
    "django_q",
    *SLIM_APPS,
]

MIDDLEWARE = [
    "halo_site.page_policy.PagePolicyMiddleware",  # first, so that its headers stand on every response
    "halo_site.problems.ProblemPagesMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "halo_site.api_middleware.ApiMiddleware",
    "axes.middleware.AxesMiddleware",  # last: it turns a locked-out login into its answer
]

ROOT_URLCONF = "halo_site.urls"
ASGI_APPLICATION = "halo_site.asgi.application"
ALLOWED_HOSTS = read_names("ALLOWED_HOSTS", default=("localhost", "127.0.0.1", "[::1]"))

# HALO_TLS: a proxy in front ends TLS and says so in X-Forwarded-Proto, which it must overwrite.
HALO_TLS = read_bool("HALO_TLS", default=False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HALO_TLS else None
SECURE_SSL_REDIRECT = HALO_TLS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 30 * 24 * 3600 if HALO_TLS else 0
SESSION_COOKIE_SECURE = HALO_TLS
CSRF_COOKIE_SECURE = HALO_TLS
SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # HSTS for subdomains is for the owner of the domain to decide, not for one host of it
    "security.W021",  # the same for the browsers' preload list
]
if not HALO_TLS:
    # Bound to this machine, plain HTTP is the intended way; halo.W001 speaks up when it isn't.
    SILENCED_SYSTEM_CHECKS += ["security.W004", "security.W008", "security.W012", "security.W016"]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

CSRF_FAILURE_VIEW = "halo_site.problems.csrf_failure"
FORMAT_MODULE_PATH = "halo_site.formats"
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"  # also for whoever comes with an address of another site as ``next``
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",  # first: it refuses before a password is looked at
    "django.contrib.auth.backends.ModelBackend",
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
# The name alone would let anyone lock a colleague out, the address alone everyone behind one proxy.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_LOCKOUT_CALLABLE = "halo_site.problems.locked_out"
AXES_ENABLE_ADMIN = False
AXES_DISABLE_ACCESS_LOG = True  # a row for each login, kept for ever
AXES_VERBOSE = False

# The admin's pages add 'unsafe-eval' (halo_site.page_policy). Styles may be inline: unfold writes its colours so.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF, UNSAFE_INLINE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
    }
}

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
STATICFILES_DIRS = [PROJECT_ROOT / "static"]
WHITENOISE_USE_FINDERS = True

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
    "log_level": "WARNING",
}
