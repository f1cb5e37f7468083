"""The bench as a part: it enters by the same door as every other, and Becket knows nothing of it."""

from __future__ import annotations

from becket.kernel.contract.part import OPERATIONS, Part, Verb

PART = Part(
    name="bench",
    needs=("heal",),
    verbs=(Verb("bench", "becket_lab.verbs:bench", "Measure the loops against scripted agents.", OPERATIONS, 320),),
)
