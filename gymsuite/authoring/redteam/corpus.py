"""Every cheat there is, by name."""

from collections.abc import Mapping

from gymsuite.authoring.redteam.bent_runs import BENT_RUNS
from gymsuite.authoring.redteam.cheat import Cheat
from gymsuite.authoring.redteam.forged_results import FORGED_RESULTS
from gymsuite.authoring.redteam.in_shell import IN_SHELL
from gymsuite.authoring.redteam.in_tree import IN_TREE

CHEATS: Mapping[str, Cheat] = {
    cheat.name: cheat for cheat in (*FORGED_RESULTS, *BENT_RUNS, *IN_TREE, *IN_SHELL)
}
