"""Fill a profile's prompt format with a premise and a claim."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from metric_core.prompts.fences import neutralize
from tasks.options.profile import CLAIM, PLACE, PREMISE, ChatForm, DecisionForm, PairForm, Profile, TextForm

Body = dict[str, Any]


@lru_cache(maxsize=256)
def guard(text: str, delimiters: tuple[str, ...]) -> str:
    r"""Return a text that cannot leave its place in a form.

    Special tokens are neutralized as in prompts, and a space breaks the delimiters of the form. A text without them is
    unchanged, so that a verifier reads what it was trained on.

    Args:
        text: Premise or claim.
        delimiters: Texts that end a place of the form, in any case.

    >>> guard("Rain.</DOCUMENT> <|im_end|>", ("</document>",))
    'Rain.< /DOCUMENT> <\\|im_end|>'
    """
    text = neutralize(text)
    for delimiter in delimiters:
        pattern = re.compile(re.escape(delimiter), re.IGNORECASE)
        while pattern.search(text):
            text = pattern.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)
    return text


def fill(part: Any, texts: Mapping[str, str]) -> Any:
    """Return a form with its places replaced, in one pass: a place within a text stays as it is written.

    >>> fill({"user": "{premise} {claim} {x}"}, {"premise": "{claim}", "claim": "It rains."})
    {'user': '{claim} It rains. {x}'}
    """
    if isinstance(part, str):
        return PLACE.sub(lambda found: texts[found[1]], part)
    if isinstance(part, Mapping):
        return {name: fill(value, texts) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [fill(value, texts) for value in part]
    return part


def chat_body(form: ChatForm, model: str, premise: str, claim: str) -> Body:
    """Return the body of a chat request.

    Args:
        model: Name of the model at the server.
        premise: Guarded premise.
        claim: Guarded claim.
    """
    texts = {PREMISE: premise, CLAIM: claim}
    body: Body = {"model": model, "messages": fill([message.model_dump() for message in form.messages], texts)}
    if form.documents:
        body["documents"] = fill(form.documents, texts)
    if form.chat_template_kwargs:
        body["chat_template_kwargs"] = fill(form.chat_template_kwargs, texts)
    body |= {"temperature": 0.0, "max_tokens": form.max_tokens}
    if form.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": form.top_logprobs}
    body |= fill(form.extra_body, texts)
    return body


def text_of(form: TextForm, premise: str, claim: str) -> str:
    """Return the text of a request."""
    return str(fill(form.text, {PREMISE: premise, CLAIM: claim}))


def pair_of(form: PairForm, premise: str, claim: str) -> tuple[str, str]:
    """Return the two texts of a request."""
    texts = {PREMISE: premise, CLAIM: claim}
    return str(fill(form.first, texts)), str(fill(form.second, texts))


DECISION_ROUTES = ("decisions", "systemone")
"""Endpoints of a server, below `/v1`, that answer typed questions; the more common one first."""


def decision_body(form: DecisionForm, route: str, model: str, premise: str, claims: Sequence[str]) -> Body:
    """Return the body of a request to a decision model about the claims on one premise.

    Args:
        route: The endpoint, `systemone` or `decisions`.

    >>> form = DecisionForm(question="Is it so? {claim}")
    >>> decision_body(form, "decisions", "m", "Rain.", ["It rains."])["questions"]
    [{'type': 'predicate', 'name': 'q0', 'instructions': 'Is it so? It rains.'}]
    """
    state = fill(form.state, {PREMISE: premise})
    asked = {f"q{number}": fill(form.question, {CLAIM: claim}) for number, claim in enumerate(claims)}
    if route == "decisions":
        questions = [{"type": "predicate", "name": name, "instructions": text} for name, text in asked.items()]
        return {"model": model, "input": state, "questions": questions}
    criteria = {"criteria": dict(form.criteria)} if form.criteria else {}
    typed = {name: {"type": "noul", "instructions": text, **criteria} for name, text in asked.items()}
    return {"model": model, "state": state, "questions": typed}


def whole_text(profile: Profile, premise: str, claim: str) -> str:
    """Return all text of a request, to estimate its size; documents first, where templates place them."""
    form = profile.form
    if isinstance(form, TextForm):
        return text_of(form, premise, claim)
    if isinstance(form, PairForm):
        return " ".join(pair_of(form, premise, claim))
    if isinstance(form, DecisionForm):
        return str(
            fill("\n".join((form.state, form.question, *form.criteria.values())), {PREMISE: premise, CLAIM: claim})
        )
    parts = [text for document in form.documents for text in document.values()]
    parts += [message.content for message in form.messages]
    return str(fill("\n".join(parts), {PREMISE: premise, CLAIM: claim}))
