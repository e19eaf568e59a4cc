"""The permissions to see and to change settings, and the groups Reviewers and Operators.

Groups of these names that are there already keep what a person gave them and get what is missing.
"""

from django.db import migrations

PERMISSIONS = [
    ("view", "Can see runs, sessions and everything else that is shown here"),
    ("review", "Can approve, reject, retry and cancel evolution runs"),
    ("rollback", "Can roll back applied changes"),
    ("author", "Can open a session for authoring the prompt surface"),
    ("chat", "Can chat with agents"),
    ("use_full_access", "Can use full access"),
    ("change_settings", "Can change settings"),
]

GROUPS = {
    "Reviewers": ["view", "review", "rollback"],
    "Operators": [codename for codename, _ in PERMISSIONS],
}


def make_groups(apps, schema_editor):
    """Django makes permissions only after all migrations, so those that groups need are made here."""
    database = schema_editor.connection.alias
    content_type, _ = (
        apps.get_model("contenttypes", "ContentType")
        .objects.using(database)
        .get_or_create(app_label="workspaces", model="workspace")
    )
    permissions = {
        codename: apps.get_model("auth", "Permission")
        .objects.using(database)
        .get_or_create(content_type=content_type, codename=codename, defaults={"name": name})[0]
        for codename, name in PERMISSIONS
    }
    for name, codenames in GROUPS.items():
        group, _ = apps.get_model("auth", "Group").objects.using(database).get_or_create(name=name)
        group.permissions.add(*(permissions[codename] for codename in codenames))


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("workspaces", "0001_initial"),
    ]

    operations = [
        migrations.AlterModelOptions(name="workspace", options={"permissions": PERMISSIONS}),
        # Backwards the groups stay: people are in them.
        migrations.RunPython(make_groups, migrations.RunPython.noop, elidable=False),
    ]
