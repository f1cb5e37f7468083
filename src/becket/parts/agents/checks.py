"""Checks of the agents: the program, its version, its login, its sandbox, its ways out, its price. None is called."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from becket.kernel.checks import words
from becket.kernel.checks.configuration import FILE, place_of
from becket.kernel.checks.containment import used_for
from becket.kernel.checks.facts import AgentFact, AgentFindings, Diagnosis, Exam, Level
from becket.kernel.checks.programs import mend_of, there
from becket.kernel.checks.shell import Program, program_of
from becket.kernel.contract.config import AgentConfig, Config

_VENDORS = {
    "codex": ("~/.codex/auth.json", "OPENAI_API_KEY"),
    "claude": ("~/.claude/.credentials.json", "ANTHROPIC_API_KEY"),
}
"""Where the programs of these drivers keep their login, and the variable that does instead."""

_say = partial(Diagnosis, name="agents")


def agents(exam: Exam) -> Iterator[Diagnosis]:
    config = exam.config
    if config is None:
        return
    if not config.agents:
        yield _say(level=Level.ok, what=words.NO_AGENT, mend=words.NO_AGENT_MEND)
        return
    facts = {fact.name: fact for fact in exam.facts.look_at_agents(config)}
    for name, agent in config.agents.items():
        fact = facts.get(name)
        missing = _missing_program(exam, name, agent, fact)
        told = missing or (_found(exam, config, name, agent, fact) if fact is not None else None)
        if told is not None:
            sight = _sight(exam, config, agent, fact) if fact is not None else None
            yield told.model_copy(update={"agent": sight})
        if fact is not None:
            yield from _beside(exam, name, agent, fact)


def program_for(agent: AgentConfig) -> Program | None:
    """What the agent's driver starts first; None if that cannot be told without running it."""
    if agent.run:
        return program_of(agent.run)
    return Program("", agent.program or agent.driver)


def _missing_program(exam: Exam, name: str, agent: AgentConfig, fact: AgentFact | None) -> Diagnosis | None:
    try:
        program = program_for(agent)
    except ValueError as error:
        what = words.NOT_SHELL.format(user=f"agents.{name}", why=error)
        return _say(level=Level.error, what=what, mend=words.NOT_SHELL_MEND, where=place_of(exam, agent.run or ""))
    if program is None or (fact.path is not None if fact is not None else there(exam, program)):
        return None
    what = words.TOOL_MISSING.format(tool=program.word, user=f"agents.{name}")
    mend = fact.install if fact is not None and fact.install else mend_of(exam, program)
    return _say(level=Level.warn, what=what, mend=mend, where=place_of(exam, agent.run or agent.program or f"{name}:"))


def _found(exam: Exam, config: Config, name: str, agent: AgentConfig, fact: AgentFact) -> Diagnosis:
    parts = [words.AGENT_FOUND.format(name=name, driver=agent.driver, what=_program_words(fact))]
    used = used_for(exam, config.sandbox_of(agent))
    loose = used.holds.missing if used is not None else ()
    if used is not None:
        held = words.AGENT_LOOSE if loose else words.AGENT_HELD
        parts.append(held.format(kind=used.holds.kind, parts=", ".join(loose)))
    parts.append(_reaches(agent, fact, held="network" not in loose))
    if agent.fallback:
        parts.append(words.AGENT_FALLBACK.format(names=", then ".join(agent.fallback)))
    return _say(level=Level.ok, what="; ".join(parts))


def _reaches(agent: AgentConfig, fact: AgentFact, *, held: bool) -> str:
    if fact.ways:
        return (words.AGENT_WAYS if held else words.AGENT_WAYS_LOOSE).format(hosts=", ".join(fact.ways))
    network = fact.network or "none"
    told = words.AGENT_REACHES[network] if held or network != "none" else words.AGENT_NONE_LOOSE
    asked = agent.driver == "command" and agent.network is None
    return words.AGENT_HOSTS_HINT.format(told=told) if asked else told


def _sight(exam: Exam, config: Config, agent: AgentConfig, fact: AgentFact) -> AgentFindings:
    used = used_for(exam, config.sandbox_of(agent))
    return AgentFindings(
        agent=fact.name,
        driver=agent.driver,
        program=str(fact.path) if fact.path is not None else None,
        version=fact.version,
        sandbox=used.holds.kind.value if used is not None else None,
        network=fact.network or "none",
        hosts=fact.ways,
        held=used is not None and "network" not in used.holds.missing,
    )


def _program_words(fact: AgentFact) -> str:
    if not fact.program:
        return words.AGENT_SHELL
    return " ".join(part for part in (fact.program, fact.version, f"({fact.path})" if fact.path else "") if part)


def _beside(exam: Exam, name: str, agent: AgentConfig, fact: AgentFact) -> Iterator[Diagnosis]:
    if fact.untested:
        yield _say(level=Level.warn, what=words.AGENT_UNTESTED.format(name=name, what=fact.untested), mend=fact.install)
    if fact.unpriced:
        what, _, mend = fact.unpriced.partition(". ")
        yield _say(level=Level.error, what=what, mend=mend or None, where=FILE)
    if fact.why_unenforceable:
        what, _, mend = fact.why_unenforceable.partition(". ")
        yield _say(level=Level.warn, what=what, mend=mend or None, where=FILE)
    if fact.unseen:
        what, _, mend = fact.unseen.partition("; ")
        where = place_of(exam, agent.run or "")
        yield _say(level=Level.error, what=f"agents.{name}: {what}", mend=mend or None, where=where)
    for wrong in fact.wrong:
        what, _, mend = wrong.partition("; ")
        yield _say(level=Level.error, what=what, mend=mend or None, where=FILE)
    if agent.driver in _VENDORS and not fact.ways and fact.network == "none":
        mend = words.AGENT_OFFLINE_MEND.format(name=name)
        yield _say(
            level=Level.warn, what=words.AGENT_OFFLINE.format(name=name, network=fact.network), mend=mend, where=FILE
        )
    yield from _login(name, agent, fact)


def _login(name: str, agent: AgentConfig, fact: AgentFact) -> Iterator[Diagnosis]:
    for login in fact.logins:
        if not login.there or login.trouble:
            what = words.AGENT_NO_LOGIN.format(name=name, what=login.what, why=login.trouble or words.NOT_THERE)
            variable = login.what.removeprefix("$")
            mend = words.AGENT_LOG_IN if variable == login.what else words.UNDEFINED_MEND.format(name=variable)
            yield _say(level=Level.warn, what=what, mend=mend, where=FILE)
    given = ", ".join(login.what for login in fact.logins if login.there and not login.trouble)
    if given:
        yield _say(level=Level.ok, what=words.AGENT_LOGIN.format(name=name, given=given))
    elif not fact.logins and agent.driver in _VENDORS and agent.endpoint is None:
        file, variable = _VENDORS[agent.driver]
        mend = words.AGENT_LOGIN_MEND.format(name=name, file=file, variable=variable)
        yield _say(level=Level.warn, what=words.AGENT_LOGIN_NONE.format(name=name), mend=mend, where=FILE)
