"""One suite for every provider of sandboxes: promises as cases, and attacks as rows.

from gymsuite.sandbox.conformance import IMAGE, run, write_recipe

write_recipe(folder)  # the image that the cases need, as folder/IMAGE/Dockerfile
results = await run(open_sandbox, SandboxSpec(image=IMAGE))
"""

from gymsuite.sandbox.conformance.case import Case, Result, Verdict
from gymsuite.sandbox.conformance.recipe import IMAGE, write_recipe
from gymsuite.sandbox.conformance.suite import CASES, check, run

__all__ = ["CASES", "IMAGE", "Case", "Result", "Verdict", "check", "run", "write_recipe"]
