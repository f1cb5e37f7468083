"""What `becket proposals` says."""

from __future__ import annotations

HEAD = ("run", "state", "since", "for", "commit", "class", "why it is yours")
NONE = "No repair waits to be taken."
READY = "ready"
LOOK = "Look at one with `becket proposals show {run_id}`."
TITLE = "A proven repair {sha} for {branch}, left by {run_id} {when}:\n"
CLASS = "\nThe change is {kind}."
PROOF = "Proof {proof}: guard, crossing and every gate; `becket verify {run_id}` checks it."
WHY = "Why it is yours to take: {why}"
MOVED = "{branch} is at {head} now, and the repair stands on {base}: it is carried over and proven again."
NEXT = """
Take it:   becket proposals accept {run_id}
Change it: becket proposals changes {run_id} --note '...'
Leave it:  becket proposals decline {run_id} --why '...'"""
ELSEWHERE = "\nIt moves no branch by a yes: {why}\nLeave it:  becket proposals decline {run_id} --why '...'"
ACCEPTED = "Accepted: {sha} goes to {branch}."
ACCEPTED_MOVED = "Accepted: {branch} has moved, so {sha} is carried over and proven again first."
NOT_YET = "{branch} has not moved yet: {run_id} takes the repair there as soon as it can."
CHANGING = "Asked for another repair than {sha}."
DECLINED_ALONE = "Declined {sha}."
DECLINED = "Declined {sha}. Its branch stays until you remove it: git branch -D {branch}"
