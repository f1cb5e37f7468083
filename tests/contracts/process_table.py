"""The table of docs/reference/sandbox.md: what the escapes come to, from the same data that their tests assert.

`python tests/contracts/process_table.py` writes it into the page.
"""

from __future__ import annotations

from pathlib import Path

import process_probes

from becket.kernel.contract.process import Holds
from becket.kernel.process.sandboxes import BubblewrapSandbox, LandlockSandbox, NoSandbox

ESCAPED, HELD = "escaped", "held"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sandbox.md"
BEGIN, END = "<!-- probes: begin -->\n", "<!-- probes: end -->\n"
TABLE_ABI = 7

_TRIED = {
    "write_outside": "write a file outside of its tree",
    "truncate_outside": "empty a file outside",
    "delete_outside": "delete a file outside",
    "move_out": "move a file of its tree out",
    "link_in": "link a file from outside into its tree, and write it there",
    "symlink_write": "write outside through a symbolic link in its tree",
    "symlink_read": "read a secret through a symbolic link in its tree",
    "home_link_write": "write outside through a symbolic link in its HOME",
    "home_link_read": "read a secret through a symbolic link in its HOME",
    "chmod_outside": "change the permissions of a file outside",
    "read_state": "read Becket's own state",
    "read_home": "read the user's `~/.netrc`",
    "move_ref": "move a branch of the main repository",
    "plant_fsmonitor": "plant a program in the main repository's git configuration",
    "see_process": "see a host process and its arguments",
    "read_environment": "read the environment of a host process",
    "signal_process": "signal a host process",
    "leave_setsid": "leave a process in a session of its own behind",
    "connect_tcp": "connect to a port of the host's loopback by TCP",
    "tcp_other_address": "the same at 127.0.0.2",
    "connect_mptcp": "the same by multipath TCP",
    "fast_open": "the same by a fast-open send",
    "send_udp": "send to a port of the host's loopback by UDP",
    "udp_other_address": "the same at 127.0.0.2",
    "abstract_socket": "send to an abstract socket of the host",
    "listed_address": "connect to a listed loopback address",
    "listed_name": "connect to a listed name through its proxy",
    "listed_port_elsewhere": "connect to a listed loopback port at 127.0.0.2",
    "listed_port_udp": "send to a listed loopback port by UDP",
    "unlisted_host": "ask its proxy for a host that is not listed",
    "unlisted_port": "ask its proxy for another port of a listed name",
    "rebound_name": "ask its proxy for a listed name that leads to a private address",
    "proxy_of_another": "use the proxy of another child",
}


def attempts(*, reach: bool) -> dict[str, str]:
    """Which attempts are made, and what has to hold for each to be held."""
    tried = process_probes.ATTEMPTS | (process_probes.WITH_REACH if reach else {})
    return {name: needs for name, (needs, _) in tried.items()}


def published(holds: Holds, *, reach: bool = False) -> dict[str, str]:
    """The outcome of every attempt, as the sandbox's own table and notes announce it."""
    always = {"end": HELD, "proxy": HELD, "meant": ESCAPED}
    expected = {
        name: always.get(needs) or (HELD if getattr(holds, needs) else ESCAPED)
        for name, needs in attempts(reach=reach).items()
    }
    notes = " ".join(holds.notes)
    if "not their environment" in notes:
        expected["read_environment"] = HELD
    if "chmod, chown, times and names of files outside stay reachable" in notes:
        expected["chmod_outside"] = ESCAPED
    if "signals to host processes, and their abstract sockets, are denied" in notes:
        expected["signal_process"] = expected["abstract_socket"] = HELD
    if "network: none denies TCP" in notes:
        expected["connect_tcp"] = expected["tcp_other_address"] = HELD
    if "network: none denies TCP and UDP" in notes:
        udp = ("send_udp", "udp_other_address", *(["listed_port_udp"] if reach else []))
        expected |= dict.fromkeys(("connect_mptcp", "fast_open", *udp), HELD)
    return expected


def rendered() -> str:
    """The table in Markdown, for the newest landlock that is known."""
    columns = [
        published(sandbox.holds(), reach=True)
        for sandbox in (BubblewrapSandbox(Path("bwrap")), LandlockSandbox(TABLE_ABI), NoSandbox())
    ]
    groups = attempts(reach=True)
    lines = ["| A child tries to | bwrap | landlock | none |", "|---|---|---|---|"]
    for name, tried in _TRIED.items():
        cells = (_cell(groups[name], column[name]) for column in columns)
        lines.append(f"| {tried} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(group: str, outcome: str) -> str:
    if group == "meant":
        return "reached, as meant"
    if group == "end":
        return "killed at its end"
    return "denied" if outcome == HELD else "**not denied**"


def page_with(table: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + table + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page_with(rendered()), encoding="utf-8")
