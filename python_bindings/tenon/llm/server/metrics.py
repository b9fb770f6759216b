# SPDX-License-Identifier: Apache-2.0
"""Numbers of the server as Prometheus reads them (text format 0.0.4).

Names behind `tenon:` are those of vLLM where they mean the same.
"""

from __future__ import annotations

from bisect import bisect_left

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Histogram:
    def __init__(self, bounds=_SECONDS):
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Metrics:
    """Counted in the event loop alone; what the engine knows is asked when they are read."""

    def __init__(self):
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.finished: dict[str, int] = {}
        self.responses: dict[int, int] = {}
        self.first_token = Histogram()
        self.between_tokens = Histogram()
        self.whole = Histogram()

    def text(self, engine) -> str:
        scheduler, cache = engine.scheduler, engine.cache
        lines: list[str] = []

        def family(name, kind, text, samples):
            lines.append(f"# HELP tenon:{name} {text}")
            lines.append(f"# TYPE tenon:{name} {kind}")
            lines.extend(f"tenon:{name}{rest}" for rest in samples)

        def one(name, kind, text, value):
            family(name, kind, text, [f" {value}"])

        def labelled(name, text, label, values):
            samples = [f'{{{label}="{key}"}} {count}' for key, count in sorted(values.items())]
            family(name, "counter", text, samples)

        running = len(scheduler.running)
        waiting = max(0, engine.open_requests - running)
        usage = cache.used / max(1, cache.used + cache.free)
        one("num_requests_running", "gauge", "Requests in the steps.", running)
        one("num_requests_waiting", "gauge", "Requests that wait.", waiting)
        one("kv_cache_usage_perc", "gauge", "Share of blocks in use, 0 to 1.", usage)
        one("prefix_cache_queries_total", "counter", "Tokens looked for.", cache.queries)
        one("prefix_cache_hits_total", "counter", "Tokens found.", cache.hits)
        one("num_preemptions_total", "counter", "Requests put back.", scheduler.preemptions)
        one("steps_total", "counter", "Steps of the engine.", engine.steps)
        one("step_seconds_total", "counter", "Time of steps.", engine.step_seconds)
        one("forward_seconds_total", "counter", "Of it in the model.", engine.forward_seconds)
        one("prompt_tokens_total", "counter", "Tokens of prompts.", self.prompt_tokens)
        one("generation_tokens_total", "counter", "Tokens generated.", self.generation_tokens)
        one("spec_decode_num_draft_tokens_total", "counter", "Guessed tokens.", engine.drafted)
        one("spec_decode_num_accepted_tokens_total", "counter", "Of them right.", engine.accepted)
        labelled("request_success_total", "Answers that ended.", "finished_reason", self.finished)
        labelled("http_responses_total", "Responses by status.", "status", self.responses)
        for name, text, histogram in (
            ("time_to_first_token_seconds", "From request to first token.", self.first_token),
            ("inter_token_latency_seconds", "Between tokens.", self.between_tokens),
            ("e2e_request_latency_seconds", "From request to last token.", self.whole),
        ):
            samples, total = [], 0
            for bound, count in zip((*histogram.bounds, "+Inf"), histogram.counts):
                total += count
                samples.append(f'_bucket{{le="{bound}"}} {total}')
            samples += [f"_sum {histogram.sum}", f"_count {total}"]
            family(name, "histogram", text, samples)
        return "\n".join(lines) + "\n"
