"""A verifier that transformers runs in this process, on a GPU if there is one; needs the extra `transformers`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metric_core.errors import JudgeError
from tasks.models.judges.verifiers.local_model import Encoded
from tasks.options.profile import InProcess, Output
from tasks.runtime.model_folder import folder_revision
from tasks.runtime.transformers_packages import require_transformers


class TransformersModel:
    """A model from the Hugging Face Hub or a local folder. No code of the model's repository is run.

    Args:
        model: Name on the Hub or path of a local folder.
        revision: Branch, tag or commit on the Hub.
        how: The part of the profile about this process.

    Raises:
        MissingDependencyError: torch or transformers is not installed.
        JudgeError: The model cannot be loaded.
    """

    def __init__(self, model: str, revision: str, how: InProcess) -> None:
        torch, transformers = require_transformers("a verifier in this process")
        self._torch = torch
        foundation = how.foundation or model
        pinned = {"revision": revision} if how.foundation is None else {}
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(foundation, **pinned)
            config = transformers.AutoConfig.from_pretrained(foundation, **pinned)
            options: dict[str, Any] = {"key_mapping": dict(how.key_mapping)} if how.key_mapping else {}
            loader = getattr(transformers, how.architecture)
            network = loader.from_pretrained(model, revision=revision, config=config, **options)
        except (OSError, ValueError, AttributeError) as error:
            raise JudgeError(
                f"the model {model!r} (revision {revision!r}) cannot be loaded: {error}. Name a model on the Hub that "
                "this machine can reach or has cached, or a local folder that contains one, in judge.verifier.model"
            ) from error
        if not self._tokenizer.is_fast:
            raise JudgeError(f"the tokenizer of {foundation!r} has no fast version, which tells where tokens are")
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._network = network.eval().to(self._device)
        folder = Path(model)
        commit = getattr(network.config, "_commit_hash", None)
        self.revision = folder_revision(folder) if folder.is_dir() else str(commit or revision)
        self.software = f"transformers {transformers.__version__} on {self._device}"
        self.window = _find_window(self._tokenizer, network.config)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special ones."""
        if not texts:
            return []
        encoded = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)
        return [len(ids) for ids in encoded["input_ids"]]

    def encode(self, first: str, second: str | None) -> Encoded:
        """Return a text or a pair as the model reads it."""
        encoded = self._tokenizer(first, second, return_offsets_mapping=True, return_token_type_ids=True, verbose=False)
        sides, offsets = encoded.sequence_ids(0), encoded["offset_mapping"]
        places = [(i, *offsets[i]) for i, side in enumerate(sides) if side == 1] if second is not None else []
        return Encoded(tuple(encoded["input_ids"]), tuple(encoded["token_type_ids"]), tuple(places))

    def scores(self, batch: Sequence[Encoded], output: Output, decoder_start: int) -> list[NDArray[np.float64]]:
        """Return the scores of the classes for each text."""
        torch = self._torch
        longest = max(len(one.ids) for one in batch)
        pad = self._tokenizer.pad_token_id or 0
        inputs = {
            "input_ids": [[*one.ids, *[pad] * (longest - len(one.ids))] for one in batch],
            "attention_mask": [[1] * len(one.ids) + [0] * (longest - len(one.ids)) for one in batch],
        }
        if "token_type_ids" in self._tokenizer.model_input_names:
            inputs["token_type_ids"] = [[*one.type_ids, *[0] * (longest - len(one.ids))] for one in batch]
        if output == "decoder_step":
            inputs["decoder_input_ids"] = [[decoder_start] for _ in batch]
        tensors = {name: torch.tensor(rows, device=self._device) for name, rows in inputs.items()}
        with torch.inference_mode():
            logits = self._network(**tensors).logits.double().cpu().numpy()
        return take_scores(logits, [len(one.ids) for one in batch], output)


def take_scores(logits: NDArray[np.float64], lengths: Sequence[int], output: Output) -> list[NDArray[np.float64]]:
    """Return each text's scores from the output of a model.

    Args:
        logits: Output of the model: per text, or per text and token.
        lengths: Number of tokens of each text, without padding.
        output: Place of the scores.

    >>> take_scores(np.zeros((1, 4, 2)), [3], "every_token")[0].shape, take_scores(np.zeros((1, 2)), [3], "sequence")
    ((3, 2), [array([0., 0.])])
    """
    if output == "sequence":
        return list(logits)
    if output == "every_token":
        return [rows[:length] for rows, length in zip(logits, lengths, strict=True)]
    return [rows[0] for rows in logits]


def _find_window(tokenizer: Any, config: Any) -> int | None:
    """Return the number of tokens that positions exist for; None for relative positions, as of T5 and DeBERTa-v3."""
    positions = getattr(config, "max_position_embeddings", None)
    kind = str(getattr(config, "model_type", ""))
    has_relative = bool(getattr(config, "relative_attention", False))
    is_relative = kind.startswith("t5") or (has_relative and not getattr(config, "position_biased_input", True))
    if is_relative or not isinstance(positions, int) or positions <= 0:
        return None
    # Models of the RoBERTa family number their positions from behind the padding token.
    return positions - ((tokenizer.pad_token_id or 0) + 1 if "roberta" in kind else 0)
