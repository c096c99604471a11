"""Working scripts, damaged: tokens dropped, doubled, swapped or replaced, scripts spliced."""

from __future__ import annotations

import random
import re

from tests.hooks.grammar import FUNCTIONS, NAMES, NUMBERS, OPERATORS, STRINGS

TOKEN = re.compile(r"\s+|\w+|'[^'\n]*'|\"[^\"\n]*\"|.", re.DOTALL)
REPLACEMENTS = [*NAMES, *FUNCTIONS, *NUMBERS, *STRINGS, *OPERATORS, "end", "do", "function", "nil"]


def mutated(rng: random.Random, corpus: list[str], hook: str) -> str:
    source = rng.choice(corpus)
    tokens = TOKEN.findall(source)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        at = rng.randrange(len(tokens) + 1)
        kind = rng.randrange(7)
        if kind == 0:
            del tokens[at : at + rng.randrange(1, 4)]
        elif kind == 1:
            tokens[at:at] = tokens[at : at + rng.randrange(1, 12)]
        elif kind == 2 and at < len(tokens):
            tokens[at] = rng.choice(REPLACEMENTS)
        elif kind == 3:
            tokens.insert(at, f" {rng.choice(REPLACEMENTS)} ")
        elif kind == 4 and len(tokens) > 1:
            other = rng.randrange(len(tokens))
            tokens[at % len(tokens)], tokens[other] = tokens[other], tokens[at % len(tokens)]
        elif kind == 5:
            splice = TOKEN.findall(rng.choice(corpus))
            start = rng.randrange(len(splice))
            tokens[at:at] = splice[start : start + rng.randrange(1, 30)]
        else:
            tokens.insert(at, "".join(chr(rng.randrange(1, 0x250)) for _ in range(3)))
    text = "".join(tokens)
    return text.replace("on_enqueue", hook).replace("on_failure", hook)
