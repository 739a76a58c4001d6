"""Detection post-processing: from a network's raw scores to a short list of boxes.

Scores above a threshold are found (`nonzero_coordinates`), the best of them taken in order
(`top_k`), their boxes gathered (`gather`), and boxes that overlap a better one of the same class
are dropped. Equal scores stay in the order of the image, so that the list is the same in every run.
"""

from __future__ import annotations

import torch
from _measured import arguments, compare

import anydml as dml

options = arguments(__doc__)
boxes, classes, most = (2000, 8, 64) if options.small else (500_000, 80, 2048)
THRESHOLD = 0.98

generator = torch.Generator().manual_seed(1)
scores = torch.rand(boxes, classes, generator=generator).to(options.device).half()
corners = torch.rand(boxes, 2, generator=generator)
sizes = torch.rand(boxes, 2, generator=generator) / 10
frames = torch.cat([corners, corners + sizes], 1).to(options.device)


def kept(frame: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
    """Which of boxes in falling order of score overlap no better one of their class by half."""
    moved = frame + 2.0 * kind[:, None]  # classes apart from each other
    low = torch.maximum(moved[:, None, :2], moved[None, :, :2])
    high = torch.minimum(moved[:, None, 2:], moved[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    area = (moved[:, 2:] - moved[:, :2]).prod(-1)
    overlap = shared / (area[:, None] + area[None, :] - shared)
    return ~(overlap.tril(-1) > 0.5).any(1)


def with_anydml() -> list[torch.Tensor]:
    """Box, class and score of what is kept."""
    found = dml.nonzero_coordinates(scores > THRESHOLD)
    best, place = dml.top_k(dml.gather_nd(scores, found), min(most, len(found)))
    box, kind = dml.gather(found, place).unbind(1)
    frame = dml.gather(frames, box)
    stay = dml.nonzero_coordinates(kept(frame, kind))[:, 0]
    return [dml.gather(frame, stay), dml.gather(kind, stay), dml.gather(best, stay)]


def with_pytorch() -> list[torch.Tensor]:
    """The same by PyTorch's own operators."""
    found = torch.nonzero(scores > THRESHOLD)
    best, place = torch.topk(scores[found[:, 0], found[:, 1]], min(most, len(found)))
    box, kind = found.index_select(0, place).unbind(1)
    frame = frames.index_select(0, box)
    stay = torch.nonzero(kept(frame, kind))[:, 0]
    return [frame.index_select(0, stay), kind.index_select(0, stay), best.index_select(0, stay)]


compare(f"{boxes} boxes of {classes} classes, the best {most}", with_anydml, with_pytorch, options)
