"""Small models with random weights of the architectures that verifiers have, as transformers makes them.

They need the extra `transformers`. Tests compare what a library or a server says of them with what transformers says.
"""

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from tokenizers.decoders import ByteLevel

from tasks.options.profile import ChatForm, DecisionForm, Profile

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
LABELS = ("Yes", "yes", "No", "no", "\u0120yes", "\u0120no")
"""Tokens that a chat model prefers to all others, so that they are among the most probable; U+0120 is a space."""

TAGS = ("<think>", "</think>", "<score>", "</score>")
"""Tokens that it prefers to single bytes."""

CHAT_TEMPLATE = """\
{%- for document in documents or [] %}<document {{ document.doc_id }}>{{ document.text }}</document>
{% endfor %}
{%- for message in messages %}<{{ message.role }}>{{ message.content }}
{% endfor %}
{%- if guardian_config is defined %}<guardian {{ guardian_config.criteria_id }} {{ think }}>
{% endif %}
{%- if add_generation_prompt %}</s><assistant>{% endif %}"""
"""A template that puts documents and its further arguments into the prompt, as that of Granite Guardian does.

A special token begins the reply: vLLM looks for the labels of decisions behind the last one.
"""

CLASSIFIER = str(Path(__file__).parents[5] / "benchmarks" / "classifier.toml")
"""Path of the profile of a classifier that no packaged profile is about."""

CHAT, DECISION = "chat", "decision"
SCORE = "score"
_SMALL = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
"""Heads of 64 numbers: vLLM for CPUs ends with smaller ones."""

_CONSTANT, _LABEL_BIAS, _QUOTE_BIAS, _TAG_BIAS = 6.0, 30.0, 36.5, 24.0


_MERGES = [("y", "e"), ("ye", "s"), ("n", "o")]
"""Merges of the tokenizer of a decision model, for which yes and no must be one token each."""


def _alphabet() -> list[str]:
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def save_tokenizer(folder: Path, kind: str) -> None:
    """Save a byte-level tokenizer of single bytes with the special tokens of a family of models."""
    transformers = pytest.importorskip("transformers", reason="needs the extra transformers")
    words = [*SPECIAL, *_alphabet(), *(LABELS + TAGS if kind == CHAT else ())]
    words += ["ye", "yes", "no"] if kind == DECISION else []
    vocabulary = {token: i for i, token in enumerate(words)}
    assert len(vocabulary) == len(words)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=_MERGES if kind == DECISION else []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind not in (CHAT, DECISION))
    tokenizer.decoder = ByteLevel()
    first, last = {"roberta": ("<s>", "</s>"), "bert": ("[CLS]", "[SEP]"), "t5": ("", "</s>")}.get(kind, ("", ""))
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=" ".join(f"{first} $A {last}".split()),
        pair=" ".join(f"{first} $A {last} $B {last}".split()),
        special_tokens=[(token, vocabulary[token]) for token in SPECIAL],
    )
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token=last or "</s>", unk_token="<unk>"
    )
    if kind in (CHAT, DECISION):
        wrapped.chat_template = CHAT_TEMPLATE
    wrapped.save_pretrained(folder)


def save_random(folder: Path, name: str) -> Any:
    """Save a small model with random weights, and return it.

    Args:
        folder: Folder to write.
        name: Name of the profile whose architecture it has, `chat` for a language model, `decision` for one that vLLM
            asks for decisions, or `score` for a model that gives a pair of texts one number.
    """
    torch = pytest.importorskip("torch", reason="needs the extra transformers")
    transformers = pytest.importorskip("transformers", reason="needs the extra transformers")
    torch.manual_seed(3)
    size = {"vocab_size": 266, "pad_token_id": 1, "initializer_range": 0.1 if name == "factcg" else 0.2}
    t5 = {
        "initializer_factor": 0.4,
        "d_model": 32,
        "d_ff": 48,
        "d_kv": 16,
        "num_layers": 2,
        "num_heads": 2,
        "vocab_size": 266,
        "pad_token_id": 1,
    }
    kind = "bert"
    if name == CHAT:
        kind = CHAT
        model = _make_chat_model(torch, transformers)
    elif name == DECISION:
        kind = DECISION
        wide = {"num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 8192, "tie_word_embeddings": False}
        config = transformers.Qwen3Config(
            **{**size, "vocab_size": 269}, **_SMALL, **wide, bos_token_id=0, eos_token_id=2
        )
        model = transformers.Qwen3ForCausalLM(config)
    elif name in ("classifier", SCORE):
        kind = "roberta"
        labels = 1 if name == SCORE else 2
        config = transformers.RobertaConfig(**size, **_SMALL, max_position_embeddings=514, num_labels=labels)
        model = transformers.RobertaForSequenceClassification(config)
    elif name == "factcg":
        config = transformers.DebertaV2Config(
            **size, **_SMALL, relative_attention=True, position_biased_input=False, num_labels=2
        )
        model = transformers.DebertaV2ForSequenceClassification(config)
    elif name == "lettucedetect":
        config = transformers.ModernBertConfig(**size, **_SMALL, num_labels=2, max_position_embeddings=1024)
        model = transformers.ModernBertForTokenClassification(config)
    else:
        kind = "t5"
        if name == "minicheck-ft5":
            model = transformers.T5ForConditionalGeneration(transformers.T5Config(**t5, decoder_start_token_id=1))
        else:
            model = transformers.T5ForTokenClassification(transformers.T5Config(**t5, num_labels=2))
    model.eval().save_pretrained(folder)
    save_tokenizer(folder, kind)
    return model


def _make_chat_model(torch: Any, transformers: Any) -> Any:
    """Return a Llama whose states have a constant, which makes the labels more probable than all other tokens."""
    first_label = len(SPECIAL) + 256
    config = transformers.LlamaConfig(
        **_SMALL,
        vocab_size=first_label + len(LABELS) + len(TAGS),
        num_key_value_heads=2,
        max_position_embeddings=8192,
        initializer_range=0.2,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=1,
    )
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = _CONSTANT
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight[0] = 0.0
            layer.mlp.down_proj.weight[0] = 0.0
        model.lm_head.weight[:, 0] = 0.0
        model.lm_head.weight[first_label : first_label + len(LABELS), 0] = _LABEL_BIAS
        model.lm_head.weight[first_label + len(LABELS) :, 0] = _TAG_BIAS
        # Where a schema asks for JSON, texts and lists end soon.
        for mark in '{}[]:"':
            bias = _QUOTE_BIAS if mark == '"' else _TAG_BIAS
            model.lm_head.weight[len(SPECIAL) + _alphabet().index(mark), 0] = bias
    return model


def own_probability(name: str, model: Any, tokenizer: Any, premise: str, claim: str) -> float:
    """Return the probability of support as the makers of a model compute it, one text at a time.

    Args:
        name: Name that the model was saved with.
        model: The model.
        tokenizer: Its tokenizer.
        premise: The premise.
        claim: The claim.
    """
    torch = pytest.importorskip("torch", reason="needs the extra transformers")
    with torch.inference_mode():
        if name == "lettucedetect":
            prompt = f"Summarize the following text:\npassage 1: {premise}\noutput:"
            inputs = tokenizer(prompt, claim, return_tensors="pt")
            inputs.pop("token_type_ids", None)
            marks = model(**inputs).logits.softmax(-1)[0, :, 1]
            count = len(tokenizer(claim, add_special_tokens=False)["input_ids"])
            return 1 - float(marks[-1 - count : -1].max())
        if name == SCORE:
            inputs = tokenizer(premise, claim, return_tensors="pt")
            inputs.pop("token_type_ids", None)
            return float(model(**inputs).logits[0, 0].sigmoid())
        text = {
            "classifier": f"{premise}</s>{claim}",
            "minicheck-ft5": f"predict: {premise}</s>{claim}",
            "hhem-2.1": (
                "<pad> Determine if the hypothesis is true given the premise?\n\n"
                f"Premise: {premise}\n\nHypothesis: {claim}"
            ),
            "factcg": (
                f'{premise}\n\nChoose your answer: based on the paragraph above can we conclude that "{claim}"?\n\n'
                "OPTIONS:\n- Yes\n- No\nI think the answer is "
            ),
        }[name]
        inputs = tokenizer(text, return_tensors="pt")
        inputs.pop("token_type_ids", None)
        if name == "minicheck-ft5":
            logits = model(**inputs, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits[0, 0]
            return float(logits[[3, 209]].softmax(-1)[1])
        logits = model(**inputs).logits[0]
        return float((logits[0] if name == "hhem-2.1" else logits).softmax(-1)[1])


def own_chat_probability(profile: Profile, model: Any, tokenizer: Any, premise: str, claim: str) -> float:
    """Return the probability of support by the next token of a chat model, as its makers read it.

    Args:
        profile: `minicheck-7b`, or a version of Granite Guardian, which is read behind its tag.
        model: The model.
        tokenizer: Its tokenizer, with a chat template.
        premise: The premise.
        claim: The claim.
    """
    torch = pytest.importorskip("torch", reason="needs the extra transformers")
    form = profile.form
    assert isinstance(form, ChatForm)
    is_guardian = profile.name.startswith("granite")
    if is_guardian:
        messages = [{"role": "assistant", "content": claim}]
        messages += [message.model_dump() for message in form.messages[1:]]
        documents = [{"doc_id": "0", "text": premise}]
        before = ["<think>", "\u010a", "</think>", "\u010a", "<score>"]  # U+010A is a line break
    else:
        messages = [
            {"role": "system", "content": form.messages[0].content},
            {"role": "user", "content": f"Document: {premise}\nClaim: {claim}"},
        ]
        documents, before = None, []
    prompt = tokenizer.apply_chat_template(
        messages, documents=documents, tokenize=False, add_generation_prompt=True, **form.chat_template_kwargs
    )
    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"] + tokenizer.convert_tokens_to_ids(before)
    with torch.inference_mode():
        distribution = model(input_ids=torch.tensor([ids])).logits[0, -1].softmax(-1)

    top = set(distribution.topk(form.top_logprobs).indices.tolist())

    def mass(word: str) -> float:
        # Replies of the guardian are held to their form, which has a space before the label.
        names = [f"\u0120{word}"] if is_guardian else [name for name in LABELS if name.lower() == word]
        ids = tokenizer.convert_tokens_to_ids(names)
        return float(sum(distribution[token] for token in ids if is_guardian or token in top))

    # Its yes means that the text is not grounded, and both labels are renormalized.
    return mass("no") / (mass("yes") + mass("no")) if is_guardian else mass("yes")


def own_decision(profile: Profile, model: Any, tokenizer: Any, premise: str, claim: str) -> float:
    """Return the probability of yes by the next token of a chat model, among yes and no, as vLLM asks for decisions."""
    torch = pytest.importorskip("torch", reason="needs the extra transformers")
    form = profile.form
    assert isinstance(form, DecisionForm)
    lines = [premise, "", f"Question: {form.question.format(claim=claim)}"]
    lines += [f"yes: {form.criteria['true']}", f"no: {form.criteria['false']}", "Answer with yes or no only."]
    messages = [{"role": "user", "content": "\n".join(lines)}]
    prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids])).logits[0, -1]
    return float(logits[tokenizer.convert_tokens_to_ids(["yes", "no"])].softmax(-1)[0])
