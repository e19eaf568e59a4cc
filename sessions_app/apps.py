from django.apps import AppConfig


class SessionsConfig(AppConfig):
    name = "sessions_app"
    verbose_name = "Sessions"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from sessions_app import builtin_commands, own_bundles, relay_delivery

        builtin_commands.register_all()
        own_bundles.register_all()
        relay_delivery.register()
