from types import ModuleType

from headrace.api import HeadraceError as HeadraceError
from headrace.api import Package as Package
from headrace.api import PackageError as PackageError
from headrace.api import Plan as Plan
from headrace.api import RunResult as RunResult
from headrace.api import TableResult as TableResult
from headrace.api import TaskResult as TaskResult
from headrace.api import load as load
from headrace.api import resume as resume
from headrace.api import run as run

__version__: str

class CallableModule(ModuleType): ...
