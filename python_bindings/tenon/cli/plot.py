# SPDX-License-Identifier: Apache-2.0
"""Pictures of numbers made of characters, for a terminal."""

_LEVELS = " ▁▂▃▄▅▆▇█"


def histograms(samples, width=60):
    """A line for each list of numbers, over one scale, which ends at the 95th percentile of the slowest: how many of them
    fall into each of `width` parts."""
    low = min(min(numbers) for numbers in samples.values())
    high = max(sorted(numbers)[(len(numbers) - 1) * 95 // 100] for numbers in samples.values())
    high = max(high, low * 1.001 + 1e-12)
    label = max(map(len, samples))
    lines = []
    for name, numbers in samples.items():
        counts = [0] * width
        for number in numbers:
            counts[min(width - 1, int((number - low) / (high - low) * width))] += 1
        most = max(counts)
        bars = "".join(_LEVELS[-(-count * (len(_LEVELS) - 1) // most)] for count in counts)
        lines.append(f"{name:<{label}}  |{bars}|")
    left, right = f"{low:.1f}", f"{high:.1f}"
    gap = max(1, width - len(left) - len(right))
    lines.append(f"{'':<{label}}   {left}{' ' * gap}{right}")
    return "\n".join(lines)
