"""What earlier steps of a run have made, as parameters take it: by kind, whatever the steps are called.

A kind is `OBJECT.OUTPUT`. OBJECT is what an action declares as `about`, such as `base` or `candidate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic.fields import FieldInfo

from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.naming import BranchName, BranchOrNone

OF = "{of}"
"""In `about` and in a kind: the object that the step's own parameter `of` names."""


@dataclass(frozen=True, slots=True)
class Takes:
    """Marks a parameter that `with` may leave out: it is then what was made of these kinds.

    That is the last output there is, in the order of `kinds` and of the loop; with `each`, the outputs of every step.
    """

    kinds: tuple[str, ...]
    each: bool = False

    def refs(self, made: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """The `id.output` that it is made of, by what the steps of a loop make."""
        return tuple(ref for kind in self.kinds for ref in made.get(kind, ()))

    @property
    def told(self) -> str:
        return " or ".join(f"`{kind}`" for kind in self.kinds)


def takes(*kinds: str, each: bool = False) -> Takes:
    return Takes(kinds, each)


def taken(params: type[Record], given: Mapping[str, Json]) -> Iterator[tuple[str, FieldInfo, Takes]]:
    """Each parameter that a step leaves to what was made, with the kinds that it means."""
    for name, field in params.model_fields.items():
        key = field.alias or name
        for mark in field.metadata if key not in given else ():
            if isinstance(mark, Takes):
                kinds = tuple(object_of(kind, params, given) for kind in mark.kinds)
                yield key, field, Takes(kinds, mark.each)


def object_of(about: str, params: type[Record], given: Mapping[str, Json]) -> str:
    """What `about` means for a step with these parameters."""
    of = params.model_fields.get("of")
    return about if of is None else about.replace(OF, str(given.get("of", of.default)))


BaseSha = Annotated[str, takes("base.sha")]
BaseBranch = Annotated[BranchName, takes("base.branch")]
BaseBranchOrNone = Annotated[BranchOrNone, takes("base.branch")]
BaseVerdicts = Annotated[tuple[str, ...], takes("base.verdict", each=True)]
CandidateSha = Annotated[str, takes("candidate.sha")]
