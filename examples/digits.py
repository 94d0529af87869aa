# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Train a network that reads handwritten digits, one CUDA graph per training step.

The graphs are built inside a function that has returned long before they run: the arrays and
buffers that it named have gone out of scope there, and live on because the graphs keep them.

    pip install 'cudago[sim,demo]'
    python examples/digits.py [--driver sim] [--epochs 20] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import cudago as cu

PIXELS, HIDDEN, CLASSES = 64, 64, 10
BATCH, RATE = 64, 0.5
TEST_IMAGES = 360
WANTED = 0.95

# A layer's weights are a matrix whose last row is the bias. Blocks are rows, threads columns.
SOURCE = r"""
extern "C" __global__ void linear(const float* x, const float* w, float* y, int inputs) {
    int row = blockIdx.x, column = threadIdx.x, columns = blockDim.x;
    float sum = w[inputs * columns + column];
    for (int i = 0; i < inputs; i++) sum += x[row * inputs + i] * w[i * columns + column];
    y[row * columns + column] = sum;
}

extern "C" __global__ void relu(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = fmaxf(x[i], 0.0f);
}

// Cross-entropy of the softmax, and its gradient. Threads are rows.
extern "C" __global__ void softmax_loss(const float* scores, const int* labels, float* gradient,
                                        float* loss, int classes) {
    int row = threadIdx.x;
    const float* s = scores + row * classes;
    float* g = gradient + row * classes;
    float largest = s[0], sum = 0.0f;
    for (int i = 1; i < classes; i++) largest = fmaxf(largest, s[i]);
    for (int i = 0; i < classes; i++) sum += g[i] = expf(s[i] - largest);
    for (int i = 0; i < classes; i++) g[i] = (g[i] / sum - (i == labels[row])) / blockDim.x;
    loss[row] = logf(sum) + largest - s[labels[row]];
}

// Blocks are inputs and, last, the bias.
extern "C" __global__ void weight_gradient(const float* x, const float* dy, float* dw, int rows) {
    int input = blockIdx.x, inputs = gridDim.x - 1, column = threadIdx.x, columns = blockDim.x;
    float sum = 0.0f;
    for (int row = 0; row < rows; row++)
        sum += (input < inputs ? x[row * inputs + input] : 1.0f) * dy[row * columns + column];
    dw[input * columns + column] = sum;
}

// Through the weights and the ReLU before them.
extern "C" __global__ void input_gradient(const float* dy, const float* w, const float* activation,
                                          float* dx, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int j = 0; j < columns; j++)
        sum += dy[blockIdx.x * columns + j] * w[threadIdx.x * columns + j];
    dx[i] = activation[i] > 0.0f ? sum : 0.0f;
}

extern "C" __global__ void sgd(float* w, const float* dw, float rate) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    w[i] -= rate * dw[i];
}
"""


class Network:
    """The compiled kernels and the weights on the device."""

    def __init__(self, start: Weights, stream: cu.Stream) -> None:
        self.code = cu.Program(SOURCE, "c++").compile()
        self.w1, self.w2 = (cu.asarray(w, stream=stream) for w in start)
        self.stream = stream

    def memory(self, *shape: int, dtype: str = "f4") -> cu.Tensor:
        """Return device memory with anything in it."""
        return cu.empty(shape, dtype, stream=self.stream)

    def add(
        self, after: cu.Node, name: str, kernel: str, blocks: int, threads: int, *args: object
    ) -> cu.Node:
        """Add a kernel to a graph."""
        config = cu.LaunchConfig(grid=blocks, block=threads)
        return after.launch(config, self.code[kernel], *args, name=name)

    def add_forward(self, after: cu.Node, x: cu.Tensor) -> tuple[cu.Node, cu.Tensor, cu.Tensor]:
        """Add the way from images to scores; return its end, what the ReLU gave, and the scores."""
        rows = x.shape[0]
        sums, active = self.memory(rows, HIDDEN), self.memory(rows, HIDDEN)
        scores = self.memory(rows, CLASSES)
        node = self.add(after, "hidden", "linear", rows, HIDDEN, x, self.w1, sums, PIXELS)
        node = self.add(node, "ReLU", "relu", rows, HIDDEN, sums, active)
        node = self.add(node, "output", "linear", rows, CLASSES, active, self.w2, scores, HIDDEN)
        return node, active, scores


def training_graph(net: Network, data: Data) -> cu.Graph:
    """Return one step of training: a batch forward, its error backward, better weights."""
    graph = cu.Graph()
    images, labels = net.memory(BATCH, PIXELS), net.memory(BATCH, dtype="i4")
    uploaded = graph.memcpy(images, data.images[:BATCH], name="images")
    labelled = graph.memcpy(labels, data.labels[:BATCH], name="labels")

    scored, active, scores = net.add_forward(uploaded, images)
    error, loss = net.memory(BATCH, CLASSES), net.memory(BATCH)
    both = graph.join(scored, labelled)
    known = net.add(both, "loss", "softmax_loss", 1, BATCH, scores, labels, error, loss, CLASSES)
    known.memcpy(np.empty(BATCH, "f4"), loss, name="report")

    shape1, shape2 = net.w1.shape, net.w2.shape
    d1, d2, hidden_error = net.memory(*shape1), net.memory(*shape2), net.memory(BATCH, HIDDEN)
    down2 = net.add(known, "gradient 2", "weight_gradient", *shape2, active, error, d2, BATCH)
    back = net.add(
        known, "back", "input_gradient", BATCH, HIDDEN, error, net.w2, active, hidden_error, CLASSES
    )
    down1 = net.add(back, "gradient 1", "weight_gradient", *shape1, images, hidden_error, d1, BATCH)
    used = graph.join(down2, back)  # `back` still reads the weights that the next node changes
    net.add(used, "update 2", "sgd", *shape2, net.w2, d2, RATE)
    net.add(down1, "update 1", "sgd", *shape1, net.w1, d1, RATE)
    return graph


def test_graph(net: Network, data: Data) -> cu.Graph:
    """Return the scoring of all test images."""
    graph = cu.Graph()
    images = net.memory(TEST_IMAGES, PIXELS)
    uploaded = graph.memcpy(images, data.test_images, name="images")
    scored, _, scores = net.add_forward(uploaded, images)
    scored.memcpy(np.empty((TEST_IMAGES, CLASSES), "f4"), scores, name="scores")
    return graph


def build(data: Data, start: Weights, stream: cu.Stream) -> tuple[cu.Graph, cu.Graph]:
    """Return both graphs. They share the weights, which nothing else has a name for afterwards."""
    net = Network(start, stream)
    return training_graph(net, data), test_graph(net, data)


class Data:
    """The digits of scikit-learn: 8 by 8 pixels, from 0 to 1."""

    def __init__(self, random: np.random.Generator) -> None:
        digits = load_digits()
        order = random.permutation(len(digits.target))
        images = (digits.data[order] / 16).astype("f4")
        labels = digits.target[order].astype("i4")
        self.test_images, self.test_labels = images[:TEST_IMAGES], labels[:TEST_IMAGES]
        self.images, self.labels = images[TEST_IMAGES:], labels[TEST_IMAGES:]

    def batches(self, random: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the images and labels of one epoch, shuffled."""
        order = random.permutation(len(self.labels))
        for first in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[first : first + BATCH]
            yield self.images[chosen], self.labels[chosen]

    def accuracy(self, scores: np.ndarray) -> float:
        """Return the share of the test images that were read right."""
        return float((scores.argmax(axis=1) == self.test_labels).mean())


Weights = tuple[np.ndarray, np.ndarray]


def random_weights(random: np.random.Generator) -> Weights:
    """Return the weights of both layers to start from; biases are 0."""
    layers = []
    for inputs, outputs in ((PIXELS, HIDDEN), (HIDDEN, CLASSES)):
        weights = random.normal(0, np.sqrt(2 / inputs), (inputs + 1, outputs)).astype("f4")
        weights[-1] = 0
        layers.append(weights)
    return layers[0], layers[1]


def train_in_numpy(
    data: Data, start: Weights, epochs: int, random: np.random.Generator
) -> np.ndarray:
    """Do the same on the host, and return the scores of the test images."""
    w1, w2 = (w.copy() for w in start)

    def forward(x: np.ndarray) -> Weights:
        hidden = np.maximum(x @ w1[:-1] + w1[-1], 0)
        return hidden, hidden @ w2[:-1] + w2[-1]

    for _ in range(epochs):
        for images, labels in data.batches(random):
            hidden, scores = forward(images)
            error = np.exp(scores - scores.max(axis=1, keepdims=True))
            error /= error.sum(axis=1, keepdims=True)
            error[np.arange(BATCH), labels] -= 1
            error /= BATCH
            hidden_error = (error @ w2[:-1].T) * (hidden > 0)
            w2 -= RATE * np.vstack([hidden.T @ error, error.sum(axis=0)])
            w1 -= RATE * np.vstack([images.T @ hidden_error, hidden_error.sum(axis=0)])
    return forward(data.test_images)[1]


class Progress:
    """A bar on a terminal; elsewhere one line per epoch."""

    def __init__(self, epochs: int, steps: int) -> None:
        self.epochs, self.steps = epochs, steps
        self.terminal = sys.stdout.isatty()

    def step(self, epoch: int, step: int, loss: float) -> None:
        """Show that a step was launched; `loss` is that of the epoch before."""
        if self.terminal:
            share = (epoch * self.steps + step + 1) / (self.epochs * self.steps)
            bar = "█" * round(30 * share) + "░" * (30 - round(30 * share))
            print(f"\r  {bar} {share:4.0%}  loss {loss:.3f} ", end="", flush=True)

    def epoch(self, epoch: int, loss: float) -> None:
        """Show that an epoch has ended."""
        if not self.terminal:
            print(f"  epoch {epoch + 1:2} of {self.epochs}: loss {loss:.3f}", flush=True)
        elif epoch + 1 == self.epochs:
            print()


def train(
    step: cu.GraphExec, data: Data, epochs: int, random: np.random.Generator, stream: cu.Stream
) -> None:
    """Launch the graph of a training step for every batch."""
    loss = np.full(BATCH, np.nan, "f4")
    step["report"].update(dst=loss)
    progress = Progress(epochs, len(data.labels) // BATCH)
    for epoch in range(epochs):
        shown = float(loss.mean())
        for number, (images, labels) in enumerate(data.batches(random)):
            # The last step's arrays are let go when its launch has ended. Nobody waits for that.
            step["images"].update(src=images)
            step["labels"].update(src=labels)
            step.launch(stream)
            progress.step(epoch, number, shown)
        stream.sync()
        progress.epoch(epoch, float(loss.mean()))


def evaluate(test: cu.GraphExec, stream: cu.Stream) -> np.ndarray:
    """Return the scores of the test images."""
    scores = np.empty((TEST_IMAGES, CLASSES), "f4")
    test["scores"].update(dst=scores)
    test.launch(stream)
    stream.sync()
    return scores


def draw(graph: cu.Graph, folder: Path) -> Path:
    """Write a picture of the graph, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "digits.svg"
    picture.write_text(graph.to_svg(), encoding="utf-8")
    return picture


def print_retained(step: cu.GraphExec) -> None:
    """Print what the executable keeps alive, node by node."""
    print(f"\n  {'node':14} {'keeps':46} {'bytes':>7}")
    for name, group in itertools.groupby(step.retained, key=lambda kept: kept.node):
        kept = list(group)
        print(f"  {name:14} {describe(kept):46} {sum(k.nbytes for k in kept):7}")


def describe(kept: list[cu.Retained]) -> str:
    """Return what is kept, by type: ``3 Tensor, 1 Kernel``."""
    counts = Counter(type(k.object).__name__ for k in kept)
    return ", ".join(f"{n} {kind}" for kind, n in counts.items())


def print_digits(data: Data, scores: np.ndarray, count: int = 6) -> None:
    """Print some test images, and what the network says they are."""
    print()
    for row in range(0, 8, 2):  # two rows of pixels in one line of text
        print("  ", end="")
        for image in data.test_images[:count].reshape(-1, 8, 8):
            for upper, lower in zip(image[row], image[row + 1], strict=True):
                print(" ▄▀█"[2 * (upper > 0.4) + (lower > 0.4)], end="")
            print("   ", end="")
        print()
    print("  " + "   ".join(f"{digit:^8}" for digit in scores[:count].argmax(axis=1)) + "\n")


def parse_arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=20, help="over all images (%(default)s)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(tempfile.gettempdir()) / "cudago-digits",
        metavar="FOLDER",
        help="where to write the picture of the graph (%(default)s)",
    )
    parser.add_argument("--driver", choices=("auto", "nvidia", "sim"), help="as in CUDAGO_DRIVER")
    return parser.parse_args()


def main() -> int:
    """Train, test, compare; return 1 if too few digits are read right."""
    options = parse_arguments()
    if options.driver:
        cu.init(driver=options.driver)
    device = cu.Device()
    data = Data(np.random.default_rng(seed=1))
    start = random_weights(np.random.default_rng(seed=2))
    print(f"cudago {cu.__version__} on {device.name}, driver {cu.driver_name()}")
    print(f"{len(data.labels)} images to learn from, {TEST_IMAGES} to be tested with\n")

    with device.create_stream(name="training") as stream:
        training, testing = build(data, start, stream)
        picture = draw(training, options.out)
        step, test = training.instantiate(), testing.instantiate()
        training.close()
        testing.close()

        began = time.perf_counter()
        train(step, data, options.epochs, np.random.default_rng(seed=3), stream)
        took = time.perf_counter() - began
        scores = evaluate(test, stream)

    expected = train_in_numpy(data, start, options.epochs, np.random.default_rng(seed=3))
    accuracy, in_numpy = data.accuracy(scores), data.accuracy(expected)
    print_retained(step)
    print_digits(data, scores)
    print(f"  read right            {accuracy:.1%}, in NumPy {in_numpy:.1%}")
    print(f"  largest difference    {abs(scores - expected).max():.1e} of a score")
    work = f"{step.launch_count} launches of {len(step.nodes)} nodes"
    print(f"  training              {work} in {took:.1f} s")
    print(f"  picture of the graph  {picture}")
    return 0 if accuracy >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
