"""Who is at the keyboard: the operating-system user, with the role that becket.yaml gives."""

from __future__ import annotations

import os
import pwd

from becket.kernel.contract.caller import Caller, Via
from becket.kernel.contract.config import Config


def at_keyboard(config: Config) -> Caller:
    # Not getpass: it believes $LOGNAME, and a role must not be had by setting a variable (L41).
    user = pwd.getpwuid(os.getuid()).pw_name
    for name, person in config.people.items():
        if person.os_user == user:
            return Caller(name=name, role=person.role, via=Via.command_line)
    # Before anybody is named, whoever owns the checkout is its owner.
    return Caller(name=user, role="member" if config.people else "owner", via=Via.command_line)
