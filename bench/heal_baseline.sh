#!/bin/sh
# The polling loop that people write: a worktree at .worktrees/test, reset to main's commit; run the gate; on failure
# the agent, commit, gate again; merge --ff-only. Fair in its own terms: no step that it could leave out.
#
#   heal_baseline.sh ROOT once            one cycle for main as it stands
#   heal_baseline.sh ROOT watch SECONDS   look at main every SECONDS, a cycle for every new commit
#
# GATE and AGENT are commands, run in the worktree. Every verdict is a line in .git/heal_baseline.log: SHA COLOR TIME.
set -eu
ROOT=$1
TREE=$ROOT/.worktrees/test
TRIES=${TRIES:-5}

ensure() {
    [ -e "$TREE/.git" ] || git -C "$ROOT" worktree add --quiet --force -B test "$TREE" main
}

told() {
    echo "$1 $2 $(date +%s.%N)" >>"$ROOT/.git/heal_baseline.log"
}

cycle() {
    base=$1
    git -C "$TREE" reset --quiet --hard "$base"
    git -C "$TREE" clean --quiet -fd
    try=0
    until (cd "$TREE" && sh -euc "$GATE") >"$ROOT/.git/heal_baseline.gate" 2>&1; do
        try=$((try + 1))
        if [ "$try" -gt "$TRIES" ]; then
            told "$base" red
            return 1
        fi
        (cd "$TREE" && sh -euc "$AGENT") <"$ROOT/.git/heal_baseline.gate" >/dev/null 2>&1 || true
        git -C "$TREE" add --all
        git -C "$TREE" commit --quiet --no-verify -m "Repair $base" || true
    done
    git -C "$ROOT" merge --quiet --ff-only test >/dev/null
    told "$base" green
}

ensure
case $2 in
once) cycle "$(git -C "$ROOT" rev-parse main)" ;;
watch)
    seen=
    while :; do
        now=$(git -C "$ROOT" rev-parse main)
        if [ "$now" != "$seen" ]; then
            seen=$now
            cycle "$now" || true
            seen=$(git -C "$ROOT" rev-parse main)
        fi
        sleep "$3"
    done
    ;;
esac
