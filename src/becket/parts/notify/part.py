"""Notifications: on the console, in files, and by a command of yours."""

from __future__ import annotations

from becket.kernel.contract.part import PEOPLE, Part, Verb

PART = Part(
    name="notify",
    actions=("becket.parts.notify.actions:ACTIONS",),
    sections={"notify": "becket.parts.notify.section:NOTIFY"},
    checks={"notify": "becket.parts.notify.checks:notify"},
    channel="becket.parts.notify.telling:channel",
    verbs=(
        Verb("notify", "becket.parts.notify.verbs:notify", "Try the `notify` command of becket.yaml.", PEOPLE, 200),
    ),
)
