"""What the tests of the papers share: all that those of the tool do."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

_OF_THE_TOOL = Path(__file__).parents[2] / "tests" / "python"
sys.path.append(str(_OF_THE_TOOL))
_spec = importlib.util.spec_from_file_location("conftest_of_the_tool", _OF_THE_TOOL / "conftest.py")
assert _spec is not None and _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = _module
_spec.loader.exec_module(_module)
globals().update({name: each for name, each in vars(_module).items() if not name.startswith("__")})

if TYPE_CHECKING:
    Cli = Callable[..., Any]
