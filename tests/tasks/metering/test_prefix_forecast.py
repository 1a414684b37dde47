"""The forecast of cached prompt tokens is the same whether or not it is told what prompts share."""

from random import Random

from tasks.metering.prefix_forecast import PrefixForecast


def test_shared_beginnings_only_save_time() -> None:
    random = Random(7)
    beginnings = ["".join(random.choices("ab", k=random.randrange(900))) for _ in range(6)]
    beginnings += [beginnings[0] + beginnings[1], beginnings[0] + beginnings[2]]
    prompts = []
    for _ in range(400):
        beginning = random.choice(beginnings)
        prompts.append((beginning + "".join(random.choices("cd", k=random.randrange(200))), len(beginning)))
    told, untold = PrefixForecast(), PrefixForecast()
    cached = [told.count_cached(prompt, shared) for prompt, shared in prompts]
    assert cached == [untold.count_cached(prompt) for prompt, _ in prompts]
    assert len(set(cached)) >= 8
