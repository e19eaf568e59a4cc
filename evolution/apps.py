from django.apps import AppConfig


class EvolutionConfig(AppConfig):
    name = "evolution"
    verbose_name = "Evolution"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from evolution.chat_command import register
        from evolution.finality import apply_is_final
        from evolution.named_pages import register as register_pages
        from evolution.pre_compact import register as register_trigger
        from workspaces.publish_lock import finality

        register()
        register_trigger()
        register_pages()
        finality.register(apply_is_final)
