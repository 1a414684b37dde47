"""Remember the models behind servers beside the rows that they gave: rows are found again without the cache of answers.

The keys of rows contain the token of a model. Its digest cannot be computed again, because the replies of a busy server
vary, so the model is kept with the token that it got when it was first seen.
"""

import hashlib
import json
import posixpath
from collections.abc import Mapping
from contextlib import suppress

from metric_core.errors import AssayError
from tasks.models.clients.observed_model import Kind, ObservedModel
from tasks.models.clients.recognize import Seen
from tasks.rows.table_files import MODELS, atomic_fs_write, filesystem, storage_errors

_SUFFIX = ".json"


def stored_models(root: str, kind: Kind, name: str) -> list[Seen]:
    """Return the models of a name that gave rows of a table store. Files that cannot be read are passed over.

    Args:
        root: Path or URL of the table store; it need not exist.
    """
    fs, folder = filesystem(_folder(root, kind, name))
    found = []
    with suppress(*storage_errors()):  # whoever looks up rows says that the store cannot be reached
        fs.invalidate_cache(folder)
        paths = sorted(path for path in fs.ls(folder, detail=False) if path.endswith(_SUFFIX))
        for path in paths:
            with suppress(*storage_errors(ValueError, KeyError, TypeError)):
                model = ObservedModel.from_json(json.loads(fs.cat_file(path)))
                found.append((posixpath.basename(path).removesuffix(_SUFFIX), model))
    return found


def store_model(root: str, known: Mapping[str, ObservedModel], entry: Seen) -> None:
    """Remember a model beside the rows of a table store.

    Args:
        root: Path or URL of the table store. A store that cannot be written causes no error here: writing rows does.
        known: Models of its name in the table store, by token.
    """
    token, model = entry
    if token in known and known[token].learnt == model.learnt:
        return
    fs, folder = filesystem(_folder(root, model.kind, model.name))
    with suppress(AssayError):
        atomic_fs_write(fs, posixpath.join(folder, f"{token}{_SUFFIX}"), json.dumps(model.to_json()).encode())


def _folder(root: str, kind: Kind, name: str) -> str:
    return posixpath.join(root, MODELS, f"{kind}-{hashlib.sha256(name.encode()).hexdigest()[:16]}")
