# Starts the recorder in each Python that runs below `partita record`, and hands over to the sitecustomize that this one
# stands before. Any Python may get here, so the syntax is that of old ones, and nothing may be raised.
import os
import sys


def _record():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    if sys.version_info < (3, 9) or not os.environ.get("PARTITA_RECORD"):
        return
    try:
        from importlib import util

        name = "_partita_record"
        folder = os.path.join(os.path.dirname(here), name)
        spec = util.spec_from_file_location(
            name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        package = util.module_from_spec(spec)
        sys.modules[name] = package
        spec.loader.exec_module(package)
        package.start_with_torch(os.environ["PARTITA_RECORD"])
    except Exception as error:
        try:
            sys.stderr.write("partita record: nothing is recorded: %s: %s\n" % (type(error).__name__, error))
        except Exception:
            pass


_record()
del _record


def _hand_over():
    from importlib import machinery, util

    spec = machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if sys.version_info >= (3, 4):
    _hand_over()
