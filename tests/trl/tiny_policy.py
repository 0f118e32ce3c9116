"""A language model of 0.36 million parameters that has learned to call tools, made in a minute.

Nothing is downloaded: the tokenizer is trained on the conversations that the model then learns.
"""

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import trl
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl.chat_template_utils import get_training_chat_template

from gymsuite import Task

Conversation = list[dict[str, Any]]

_TEMPLATE = (Path(trl.__file__).parent / "chat_templates/qwen2_5.jinja").read_text()
_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
_TAGS = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
_VOCABULARY = 1000
_LONGEST = 1024
_WARM_UP = 10


@dataclass(frozen=True)
class Lessons:
    """Conversations about a few tasks. Half of the answers are right, the others another task's."""

    rows: Sequence[dict[str, Any]]
    tasks: Sequence[Task]
    tools: Sequence[Callable[..., str]]

    def draw(self, rng: random.Random) -> Conversation:
        """One conversation, ending with a short farewell."""
        at = rng.randrange(len(self.rows))
        task = self.tasks[at]
        other = task if rng.random() < 0.5 else rng.choice(self.tasks)
        code = str(other.solution[0].arguments["code"])
        code = code.replace(other.metadata["function"], task.metadata["function"])
        return [
            *self.rows[at]["prompt"],
            _calling("write_solution", {"code": code}),
            {"role": "tool", "content": f"wrote solution.py ({len(code)} bytes)"},
            _calling("submit", {}),
            {"role": "tool", "content": "submitted"},
            {"role": "assistant", "content": "Done."},
        ]


def make_tokenizer(lessons: Lessons) -> PreTrainedTokenizerFast:
    """Byte-level BPE, trained on the lessons as the chat template shows them."""
    rng = random.Random(0)
    untrained = _finished(Tokenizer(models.BPE()))
    texts = [
        untrained.apply_chat_template(lessons.draw(rng), tools=list(lessons.tools), tokenize=False)
        for _ in range(60)
    ]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        special_tokens=_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _finished(tokenizer)


def _finished(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    end, padding = "<|im_end|>", "<|endoftext|>"
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=end, pad_token=padding, padding_side="left"
    )
    made.add_tokens(_TAGS, special_tokens=False)
    made.chat_template = _TEMPLATE
    return made


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    """A random model."""
    torch.manual_seed(0)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=96,
            intermediate_size=256,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=_LONGEST,
            tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
        )
    )


@dataclass(frozen=True)
class TinyPolicy:
    """A tokenizer, and the weights of a model that has had its lessons."""

    tokenizer: PreTrainedTokenizerFast
    weights: Mapping[str, torch.Tensor]

    def fresh_model(self) -> Qwen2ForCausalLM:
        """The model as it was after the lessons."""
        model = make_model(self.tokenizer)
        model.load_state_dict(self.weights)
        return model

    def replies_as_tokens(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """What the template puts between the model's turns: the tools' replies and their frame."""
        tokens: list[int] = []
        for is_reply, group in itertools.groupby(messages, lambda m: m["role"] == "tool"):
            if is_reply:
                body = "".join(
                    f"\n<tool_response>\n{message['content']}\n</tool_response>"
                    for message in group
                )
                text = f"\n<|im_start|>user{body}<|im_end|>\n<|im_start|>assistant\n"
                tokens += self.tokenizer.encode(text, add_special_tokens=False)
        return tokens


def taught_policy(lessons: Lessons, *, steps: int) -> TinyPolicy:
    """A policy after so many supervised steps on what the assistant says in the lessons."""
    tokenizer = make_tokenizer(lessons)
    model = make_model(tokenizer)
    rng = random.Random(1)
    template = get_training_chat_template(tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=7e-3, betas=(0.9, 0.95))
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / _WARM_UP, 1.0, 1.6 * (steps - step) / steps)
    )
    model.train()
    for _ in range(steps):
        batch = [
            tokenizer.apply_chat_template(
                lessons.draw(rng),
                tools=list(lessons.tools),
                chat_template=template,
                tokenize=True,
                return_dict=True,
                return_assistant_tokens_mask=True,
            )
            for _ in range(8)
        ]
        inputs, labels = _padded(batch, tokenizer.pad_token_id)
        mask = (inputs != tokenizer.pad_token_id).long()
        loss = model(input_ids=inputs, attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
    return TinyPolicy(tokenizer, model.state_dict())


def _padded(batch: Sequence[Any], padding: int) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(row["input_ids"]) for row in batch)
    inputs = torch.full((len(batch), longest), padding)
    labels = torch.full((len(batch), longest), -100)
    for i, row in enumerate(batch):
        ids = torch.tensor(row["input_ids"])
        said = torch.tensor(row["assistant_masks"]).bool()
        inputs[i, : len(ids)] = ids
        labels[i, : len(ids)] = torch.where(said, ids, torch.tensor(-100))
    return inputs, labels


def _calling(name: str, arguments: dict[str, str]) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"type": "function", "function": function}],
    }
