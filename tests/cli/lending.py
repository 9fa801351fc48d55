"""A module whose resolvers another one's tools use, some of them."""

from pydantic import BaseModel

from askback import Elicit


class Days(BaseModel):
    days: int


def borrow() -> Elicit[Days]:
    return Elicit("For how many days?", Days)


def give_back() -> Elicit[Days]:
    return Elicit("After how many days?", Days)
