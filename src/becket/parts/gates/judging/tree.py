"""A proof tree: a clean checkout of one commit with its set-up, where steps run contained."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from becket.kernel.contract.action import ActionContext
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import ActionFailed, PlaceTaken
from becket.kernel.contract.git import Git, Workspace
from becket.kernel.contract.loop import PROOF, Places
from becket.kernel.contract.process import NEUTRAL
from becket.kernel.contract.project import Projects
from becket.kernel.contract.receipt import SETUP, Receipt
from becket.parts.gates.ports.setup import SetupFailed, SetupReady, Setups
from becket.parts.gates.section import SET_UP, SetupConfig


@dataclass(slots=True)
class TreeUse:
    """Whether a tree must be opened (again) before a step may begin: a program ran in it, or nobody needed it yet."""

    began: bool = False


@dataclass(frozen=True, slots=True)
class ProofTree:
    """`config` is base's: the gate's definition never comes from the tree that is judged."""

    workspace: Workspace
    tree_hash: str
    config: Config
    setup: SetupReady | None = None
    use: TreeUse = field(default_factory=TreeUse, compare=False)

    @property
    def root(self) -> Path:
        return self.workspace.tree

    @property
    def readable(self) -> tuple[Path, ...]:
        objects = self.workspace.objects
        return (objects,) if self.setup is None else (objects, self.setup.folder)

    def held(self, beside: tuple[Path, ...], path: str) -> bool:
        """May a step read this place and not write there: what the set-up made, git's objects, what lies `beside` the
        system? Paths come from logs."""
        try:
            inside = path.removeprefix(f"{NEUTRAL}/")
            place = (self.root / inside).resolve()
        except (OSError, ValueError, RuntimeError):
            return False
        return any(place.is_relative_to(folder.resolve()) for folder in (*self.readable, *beside))

    @property
    def setup_key(self) -> str:
        return "" if self.setup is None else self.setup.key

    def has(self, path: str) -> bool:
        """Is there such a file in the tree? Names come from reports: nothing outside the tree exists."""
        try:
            target = (self.root / path).resolve()
        except (OSError, ValueError):
            return False
        return target.is_relative_to(self.root.resolve()) and target.is_file()


async def open_tree(
    context: ActionContext,
    sha: str,
    defined_by: str,
    place: str = PROOF,
    *,
    resident: bool = False,
    config: Config | None = None,
    when_needed: bool = False,
) -> ProofTree | SetupFailed:
    """Check out `sha`, clean of everything that is not committed (L5), and provide its set-up. The tree of a run shows
    one commit after another; whoever needs a second one while that is in use names another `place`.

    Only whoever tries a becket.yaml that is not committed yet gives its `config`. With `when_needed` nothing is checked
    out before the first step that no memory spares.
    """
    git = context.port(Git)
    config = config or await context.port(Projects).committed(defined_by)
    use = TreeUse(began=when_needed and not resident)
    if resident:
        folder, tree = context.port(Places).resident()
        try:
            workspace = await git.open_workspace(folder, sha, tree)
        except PlaceTaken as taken:
            raise ActionFailed(str(taken), kind="environment") from taken
    elif use.began:
        workspace = Workspace.below(context.folder(place), sha)
    else:
        workspace = await git.open_workspace(context.folder(place), sha)
    proof = ProofTree(workspace, await git.tree_of(sha), config, use=use)
    setup = config.section(SET_UP)
    if setup is None:
        return proof
    ready = await set_up(context, sha, setup, None if use.began else workspace)
    return ready if isinstance(ready, SetupFailed) else replace(proof, setup=ready)


async def clean_again(context: ActionContext, proof: ProofTree) -> None:
    """As it was opened, if anything ran in it since: a step is judged by its commit, not by what others left (L5)."""
    if not proof.use.began:
        return
    workspace = proof.workspace
    folder = workspace.git_dir.parent
    elsewhere = None if workspace.tree.parent == folder else workspace.tree
    await context.port(Git).open_workspace(folder, workspace.sha, elsewhere)
    if proof.setup is not None:
        context.port(Setups).provide(workspace, proof.setup)
    proof.use.began = False


async def beside(context: ActionContext, proof: ProofTree, place: str) -> ProofTree:
    """Another tree of the same commit, with the same set-up."""
    workspace = await context.port(Git).open_workspace(context.folder(place), proof.workspace.sha)
    if proof.setup is not None:
        context.port(Setups).provide(workspace, proof.setup)
    return replace(proof, workspace=workspace, use=TreeUse())


async def set_up(
    context: ActionContext, sha: str, setup: SetupConfig, workspace: Workspace | None
) -> SetupReady | SetupFailed:
    """Base's command with this commit's lock files; its links are in the tree, if there is one, when this returns."""
    setups, hidden = context.port(Setups), context.port(Places).hidden()
    ready = await setups.ensure(sha, setup, context.run.run_id, watcher=context.watcher(), hidden=hidden)
    if isinstance(ready, SetupFailed):
        await _keep_log(context, ready.log, ready.exit_code)
        return ready
    if ready.built:
        await _keep_log(context, ready.log, 0)
    if workspace is not None:
        setups.provide(workspace, ready)
    return ready


async def _keep_log(context: ActionContext, log: Path | None, exit_code: int | None) -> None:
    """A set-up's log is evidence like a step's: `becket runs show --log setup` and reports have it."""
    if log is not None and log.exists():
        now, digest = await context.now(), await context.keep(log, "setup.log")
        await context.receipt(Receipt(kind=SETUP, exit_code=exit_code, log=digest), now, now)


async def still_clean(context: ActionContext, proof: ProofTree) -> tuple[str, ...]:
    """Tracked files that a step changed (L17): its result is not about the commit any more."""
    state = await context.port(Git).status(proof.workspace, untracked=False)
    if state.head != proof.workspace.sha:
        raise ActionFailed(f"{proof.root} left {proof.workspace.sha} for {state.head}", kind="head_moved")
    return state.changed


async def readable(context: ActionContext, base: str, workspace: Workspace) -> tuple[Path, ...]:
    """The agent may run the tests as the gate does: the set-up is provided where one is configured."""
    config = await config_of(context, base)
    setup = config.section(SET_UP) if config is not None else None
    if setup is None:
        return (workspace.objects,)
    ready = await set_up(context, base, setup, workspace)
    if isinstance(ready, SetupFailed):
        raise ActionFailed(f"the set-up of {base[:12]} fails: {ready.reason}", kind="environment")
    return (ready.folder, workspace.objects)


async def config_of(context: ActionContext, base: str) -> Config | None:
    """None for a commit without becket.yaml."""
    try:
        return await context.port(Projects).committed(base)
    except ActionFailed as error:
        if error.kind != "not_configured":
            raise
        return None
