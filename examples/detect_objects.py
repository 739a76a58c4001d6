"""Detection post-processing: from a network's raw predictions to a short list of objects.

``split`` takes the predictions apart, ``top_k`` keeps the best candidates of each image, ``gather``
and ``gather_nd`` fetch their boxes, ``nonzero_coordinates`` lists those that are left after
overlapping ones have been suppressed.
"""

import numpy as np

import anydml as dml

IMAGES, ANCHORS, CANDIDATES = 2, 4000, 200
CLASSES = ("person", "bicycle", "car", "dog")
LEAST_SCORE, MOST_OVERLAP = 0.5, 0.45


def overlap(boxes: np.ndarray) -> np.ndarray:
    """Intersection over union of every two boxes (x0, y0, x1, y1)."""
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    common = np.prod(np.clip(high - low, 0, None), axis=-1)
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=-1)
    return common / (area[:, None] + area[None, :] - common)


def suppress(boxes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Which boxes, best first, overlap no better one of their class."""
    clash = (overlap(boxes) > MOST_OVERLAP) & (classes[:, None] == classes[None, :])
    keep = np.ones(len(boxes), bool)
    for i in range(len(boxes)):
        if keep[i]:
            keep[i + 1 :] &= ~clash[i, i + 1 :]
    return keep


def detect(predictions: np.ndarray) -> list[tuple[int, str, float, np.ndarray]]:
    """Image, class, score and box of every object, best first."""
    boxes, objectness, likelihoods = dml.split(predictions, [4, 1, len(CLASSES)], axis=2)
    scores = objectness * likelihoods
    best, classes = dml.top_k(scores, 1, axis=2)
    values, anchors = dml.top_k(best[:, :, 0], CANDIDATES, axis=1)

    found = []
    for image in range(IMAGES):
        kinds = dml.gather(classes[image, :, 0], anchors[image])
        corners = dml.gather(boxes[image], anchors[image])
        left = (values[image] >= LEAST_SCORE) & suppress(corners, kinds)
        for (row,) in dml.nonzero_coordinates(left).tolist():
            name = CLASSES[kinds[row]]
            found.append((image, name, float(values[image, row]), corners[row]))
    return found


def expected(predictions: np.ndarray) -> list[tuple[int, str, float, np.ndarray]]:
    """The same, box by box in plain NumPy."""
    found = []
    for image, rows in enumerate(predictions):
        scores = (rows[:, 4:5] * rows[:, 5:]).max(axis=1)
        classes = (rows[:, 4:5] * rows[:, 5:]).argmax(axis=1)
        kept: list[int] = []
        for i in np.argsort(-scores, kind="stable")[:CANDIDATES]:
            rivals = [j for j in kept if classes[j] == classes[i]]
            if any(overlap(rows[[i, j], :4])[0, 1] > MOST_OVERLAP for j in rivals):
                continue
            kept.append(i)
        found += [
            (image, CLASSES[classes[i]], float(scores[i]), rows[i, :4])
            for i in kept
            if scores[i] >= LEAST_SCORE
        ]
    return found


def predict(random: np.random.Generator, objects: list[tuple[int, int, list[float]]]) -> np.ndarray:
    """What a network might say: noise, and around each object a cluster of good boxes."""
    rows = np.zeros((IMAGES, ANCHORS, 5 + len(CLASSES)), np.float32)
    corner, size = random.uniform(0, 600, (2, IMAGES, ANCHORS, 2))
    rows[..., :2], rows[..., 2:4] = corner, corner + size / 6 + 4
    rows[..., 4] = random.beta(1, 30, (IMAGES, ANCHORS))
    rows[..., 5:] = random.uniform(0, 1, (IMAGES, ANCHORS, len(CLASSES)))
    for image, kind, box in objects:
        near = random.choice(ANCHORS, 25, replace=False)
        rows[image, near, :4] = np.array(box) + random.normal(0, 2, (25, 4))
        rows[image, near, 4] = random.uniform(0.7, 1, 25)
        rows[image, near, 5:] = 0.05
        rows[image, near, 5 + kind] = random.uniform(0.8, 1, 25)
    return rows


truth = [
    (0, 0, [60, 80, 130, 300]),
    (0, 0, [150, 90, 215, 310]),
    (0, 1, [70, 200, 220, 330]),
    (1, 2, [300, 220, 520, 340]),
    (1, 3, [40, 300, 140, 380]),
]
predictions = predict(np.random.default_rng(3), truth)
found = detect(predictions)

reference = expected(predictions)
assert [row[:3] for row in found] == [row[:3] for row in reference]
assert all(
    np.array_equal(ours[3], theirs[3]) for ours, theirs in zip(found, reference, strict=True)
)
assert sorted((image, CLASSES[kind]) for image, kind, _ in truth) == sorted(
    row[:2] for row in found
)

print(f"{IMAGES} images, {ANCHORS} predictions each, {len(found)} objects")
for image, name, score, box in found:
    print(f"image {image}  {name:8s} {score:.2f}  box {np.round(box).astype(int).tolist()}")
