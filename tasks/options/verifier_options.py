"""Declare the options of a verifier that runs in this process."""

from typing import Annotated, Literal

from tasks.options.option import ModelOptions, Option


class VerifierOptions(ModelOptions, affects_scores=True):
    """Options of a verifier that runs in this process: its model, and the library that runs it."""

    model: Annotated[
        str | None,
        Option(
            "Name of the model at the hub, or its folder. Default: the model of the profile.",
            holds="command",
            examples=["models/factcg"],
        ),
    ] = None
    revision: Annotated[str, Option("Branch, tag or commit at the hub.", holds="text")] = "main"
    runtime: Annotated[
        Literal["auto", "transformers", "onnx"],
        Option(
            "Library that runs it: onnx for a folder with model.onnx and tokenizer.json, transformers (an extra) for "
            "all others; auto looks into the folder."
        ),
    ] = "auto"
