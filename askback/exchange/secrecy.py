"""Questions that look as if they asked for a secret."""

import re

from askback.exchange.question import Question

SECRET = re.compile(
    r"(?i)pass(word|wd|phrase|code)|\bpwd\b|secret|token|credential|\bkeys?\b|apikey|card.?(number|no\b)|\bcard\b"
    r"|security code|\bcvv2?\b|\bcvc\b|\bpin\b|\bssn\b|\biban\b|\botp\b|one.?time"
)


def asks_for_secrets(question: Question) -> bool:
    """Whether a question, or a field of its form, seems to ask for a password, a token, a key or a card number."""
    texts = [question.message]
    for field in question.form.fields.values() if question.form is not None else ():
        texts += [field.name, field.title, field.description, field.format]
    words = [re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]", " ", text) for text in texts]
    return any(SECRET.search(each) for each in (*texts, *words))
