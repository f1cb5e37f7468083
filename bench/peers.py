"""The same work done by the physical limit and by two peers: N steps that do nothing, each made durable on SQLite.

Every function runs `rounds` rounds of `steps` steps and gives seconds per step, one figure per round.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any, TypedDict


def bare_commit(folder: Path, steps: int, rounds: int) -> list[float]:
    """One row, one commit, synchronous=FULL: nothing durable can be cheaper on this disk."""
    database = sqlite3.connect(folder / "bare.db", isolation_level=None)
    database.execute("pragma journal_mode=wal")
    database.execute("pragma synchronous=full")
    database.execute("create table row (id integer primary key, body text)")
    figures = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for number in range(steps):
            database.execute("begin immediate")
            database.execute("insert into row (body) values (?)", (f"step {number} did nothing",))
            database.execute("commit")
        figures.append((time.perf_counter() - begin) / steps)
    database.close()
    return figures


def dbos_step(folder: Path, steps: int, rounds: int) -> list[float]:
    """A DBOS workflow of steps, on its own SQLite system database."""
    from dbos import DBOS, DBOSConfig

    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": f"sqlite:///{folder / 'dbos.db'}",
        "log_level": "ERROR",
        "run_admin_server": False,
    }
    DBOS(config=config)

    @DBOS.step()
    def nothing(number: int) -> int:
        return number

    @DBOS.workflow()
    def walk(count: int) -> int:
        return sum(nothing(number) for number in range(count))

    DBOS.launch()
    walk(5)
    figures = []
    for _ in range(rounds):
        begin = time.perf_counter()
        walk(steps)
        figures.append((time.perf_counter() - begin) / steps)
    DBOS.destroy()
    return figures


class _Count(TypedDict):
    left: int


def langgraph_step(folder: Path, steps: int, rounds: int) -> list[float]:
    """A LangGraph graph of one node that goes round, checkpointed to SQLite at every step (durability=sync)."""
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    def nothing(state: _Count) -> _Count:
        return {"left": state["left"] - 1}

    graph: Any = StateGraph(_Count)
    graph.add_node("nothing", nothing)
    graph.add_edge(START, "nothing")
    graph.add_conditional_edges("nothing", lambda state: "nothing" if state["left"] > 0 else END)
    database = sqlite3.connect(folder / "graph.db", check_same_thread=False)
    database.execute("pragma synchronous=full")
    compiled = graph.compile(checkpointer=SqliteSaver(database))
    figures = []
    for turn in range(rounds + 1):
        config = {"configurable": {"thread_id": f"{os.getpid()}-{turn}"}, "recursion_limit": steps + 10}
        begin = time.perf_counter()
        compiled.invoke({"left": steps}, config, durability="sync")
        if turn:  # the first one warms up
            figures.append((time.perf_counter() - begin) / steps)
    database.close()
    return figures
