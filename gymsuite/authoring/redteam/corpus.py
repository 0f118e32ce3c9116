"""Every cheat there is, by name."""

from collections.abc import Mapping

from gymsuite.authoring.redteam.bent_runs import BENT_RUNS
from gymsuite.authoring.redteam.borrowed_answers import BORROWED_ANSWERS
from gymsuite.authoring.redteam.broken_machine import BROKEN_MACHINE
from gymsuite.authoring.redteam.cheat import Cheat
from gymsuite.authoring.redteam.forged_results import FORGED_RESULTS
from gymsuite.authoring.redteam.in_shell import IN_SHELL
from gymsuite.authoring.redteam.in_tree import IN_TREE

_KINDS = (FORGED_RESULTS, BENT_RUNS, BORROWED_ANSWERS, BROKEN_MACHINE, IN_TREE, IN_SHELL)

CHEATS: Mapping[str, Cheat] = {cheat.name: cheat for kind in _KINDS for cheat in kind}
