"""Compare the packaged embedding model with the official weights of all-MiniLM-L6-v2, tensor by tensor.

    python -m benchmarks.packaged_minilm model.safetensors

`model.safetensors` is that of sentence-transformers/all-MiniLM-L6-v2 at the Hugging Face Hub. Needs the packages onnx
and safetensors. Prints how many tensors are equal, and the largest rounding error of the others in steps.
"""

import argparse
import hashlib
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors.numpy import load_file

from tasks.models.embedders.minilm import MODEL

OFFICIAL = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the official file, at revision 1110a243fdf4706b3f48f1d95db1a4f5529b4d41."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, help="official model.safetensors")
    weights = parser.parse_args().weights
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    print("official file" if digest == OFFICIAL else f"another file than the official one: sha256 {digest}")
    official = load_file(weights)
    packaged = {
        tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(str(MODEL.verify())).graph.initializer
    }

    equal = {name for name, tensor in official.items() if np.array_equal(packaged.get(f"inner.{name}", ()), tensor)}
    others = {name: tensor for name, tensor in official.items() if name not in equal}
    print(f"{len(equal)} tensors are equal, bit for bit")
    nearest = {}
    for name, rounded in packaged.items():
        if name.endswith("_q"):
            scale = packaged[f"{name.removesuffix('_q')}_scale"]
            original, steps = min(
                ((name, _largest_error(rounded, scale, tensor)) for name, tensor in others.items()),
                key=lambda found: found[1],
            )
            nearest[original] = steps
    print(f"{len(nearest)} tensors are rounded to 8 bits, by at most {max(nearest.values()):.4f} steps")
    print(f"not packaged: {', '.join(sorted(others.keys() - nearest.keys()))}")


def _largest_error(rounded: NDArray[np.int8], scale: NDArray[np.float32], tensor: NDArray[np.float32]) -> float:
    """Return the largest difference in steps; infinite if the shapes differ."""
    restored = rounded * scale
    candidates = [each for each in (tensor, tensor.T) if each.shape == restored.shape]
    return min((float(np.max(np.abs(each - restored) / scale)) for each in candidates), default=float("inf"))


if __name__ == "__main__":
    main()
