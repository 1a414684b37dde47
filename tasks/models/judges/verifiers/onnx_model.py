"""A verifier that onnxruntime runs in this process: a folder with `model.onnx` and `tokenizer.json`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from metric_core.errors import JudgeError
from tasks.models.judges.verifiers.local_model import Encoded
from tasks.models.judges.verifiers.transformers_model import take_scores
from tasks.options.profile import Output
from tasks.runtime.model_folder import folder_revision

_PADS = ("<pad>", "[PAD]", "<|padding|>", "<|endoftext|>")
_KNOWN = frozenset({"input_ids", "attention_mask", "token_type_ids", "decoder_input_ids"})


def find_onnx(folder: Path) -> Path | None:
    """Return the ONNX file of a folder, where exporters write it; None if there is none."""
    return next((path for path in (folder / "model.onnx", folder / "onnx" / "model.onnx") if path.is_file()), None)


class OnnxModel:
    """A model in an ONNX file, with the tokenizer beside it.

    Raises:
        JudgeError: A file is missing or cannot be read, or the model has inputs that no text has.
    """

    def __init__(self, folder: Path) -> None:
        path, tokenizer = find_onnx(folder), folder / "tokenizer.json"
        if path is None or not tokenizer.is_file():
            missing = "tokenizer.json" if path is not None else "model.onnx"
            raise JudgeError(f"the folder {folder} has no {missing}; export the model with `optimum-cli export onnx`")
        try:
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
            # Azure's would ask a service elsewhere, and runs no local model.
            providers = [each for each in onnxruntime.get_available_providers() if not each.startswith("Azure")]
            self._session = onnxruntime.InferenceSession(str(path), providers=providers)
        except Exception as error:  # both libraries raise their own errors, without a common class
            raise JudgeError(f"the model in {folder} cannot be loaded: {error}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._inputs = [each.name for each in self._session.get_inputs()]
        if unknown := sorted({*self._inputs} - _KNOWN):
            raise JudgeError(f"{path} has the inputs {', '.join(unknown)}; wanted only {', '.join(sorted(_KNOWN))}")
        ids = [self._tokenizer.token_to_id(pad) for pad in _PADS]
        self._pad = next((one for one in ids if one is not None), 0)
        self.revision = folder_revision(folder)
        self.software = f"onnxruntime {onnxruntime.__version__} with {self._session.get_providers()[0]}"
        self.window: int | None = None

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special ones."""
        return [len(one.ids) for one in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def encode(self, first: str, second: str | None) -> Encoded:
        """Return a text or a pair as the model reads it."""
        encoded = self._tokenizer.encode(first, second)
        places = [(i, *encoded.offsets[i]) for i, side in enumerate(encoded.sequence_ids) if side == 1]
        return Encoded(tuple(encoded.ids), tuple(encoded.type_ids), tuple(places) if second is not None else ())

    def scores(self, batch: Sequence[Encoded], output: Output, decoder_start: int) -> list[NDArray[np.float64]]:
        """Return the scores of the classes for each text."""
        longest = max(len(one.ids) for one in batch)

        def padded(rows: Sequence[Sequence[int]], value: int) -> NDArray[np.int64]:
            return np.array([[*row, *[value] * (longest - len(row))] for row in rows], dtype=np.int64)

        inputs = {
            "input_ids": padded([one.ids for one in batch], self._pad),
            "attention_mask": padded([[1] * len(one.ids) for one in batch], 0),
            "token_type_ids": padded([one.type_ids for one in batch], 0),
            "decoder_input_ids": np.full((len(batch), 1), decoder_start, dtype=np.int64),
        }
        logits = self._session.run(None, {name: inputs[name] for name in self._inputs})[0]
        return take_scores(np.asarray(logits, dtype=np.float64), [len(one.ids) for one in batch], output)
