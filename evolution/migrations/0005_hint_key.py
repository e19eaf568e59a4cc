import hashlib

from django.db import migrations, models
from django.db.models import F, Q

WAITING = Q(status="pending", attempts=F("attempts_base"))
NAME = "one_pending_run_per_hint"
NO_HINT = hashlib.sha256(b"").hexdigest()


def hash_hints(apps, _schema_editor):
    runs = apps.get_model("evolution", "EvolutionRun").objects
    for pk, hint in runs.exclude(user_hint="").values_list("pk", "user_hint").iterator():
        runs.filter(pk=pk).update(hint_key=hashlib.sha256(hint.encode()).hexdigest())


class Migration(migrations.Migration):
    dependencies = [("evolution", "0004_hint_by")]

    operations = [
        migrations.AddField(
            model_name="evolutionrun",
            name="hint_key",
            field=models.CharField(default=NO_HINT, editable=False, max_length=64),
        ),
        migrations.RunPython(hash_hints, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="evolutionrun", name=NAME),
        migrations.AddConstraint(
            model_name="evolutionrun",
            constraint=models.UniqueConstraint(
                fields=["source_session", "hint_key"], condition=WAITING, name=NAME
            ),
        ),
    ]
