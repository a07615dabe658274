"""Names for tasks that people can say: `calm-otter`, always the same for the same id."""

from __future__ import annotations

from uuid import UUID

_ADJECTIVES = """
able agile amber bold brave brief bright brisk calm civil clean clear clever cosy crisp daring deft
eager early easy fair fine fleet fond frank fresh gentle glad golden grand green happy hardy honest
humble jolly keen kind large level light lively loyal lucid lucky mellow merry mild modest neat
nimble noble plain polite prime proud pure quick quiet rapid ready rosy round sage sharp shiny
silent silver simple sleek smart smooth snug solid sound spry stable steady still strong sturdy
sunny sure swift tidy tough trim true vivid warm wise witty young
""".split()  # noqa: SIM905 - a list of a hundred quoted words reads worse
_NOUNS = """
acorn anchor apple aspen badger beacon beaver birch bison breeze bridge brook canyon cedar cliff
cloud clover comet coral crane creek dawn delta dolphin dune eagle ember falcon fern finch fjord
forest fox garden glacier grove gull harbor hawk hazel heron hill island ivy jay kestrel lagoon lake
lantern lark laurel lemon lily linden lynx maple marsh meadow mesa moon moss oak ocean olive orbit
orchid osprey otter owl panda pebble pine planet plum pond poplar prairie puffin quartz quill rain
raven reef ridge river robin rowan sage salmon seal sparrow spruce star stone storm stream summit
swan thistle tiger trail tulip valley violet walnut wave willow wolf wren
""".split()  # noqa: SIM905 - a list of a hundred quoted words reads worse


def slug(id: UUID, attempt: int = 0) -> str:
    """An adjective and a noun for a row's id; later attempts, for names that are taken, add a number."""
    seed = id.int ^ (id.int >> 64)
    name = f"{_ADJECTIVES[seed % len(_ADJECTIVES)]}-{_NOUNS[seed // len(_ADJECTIVES) % len(_NOUNS)]}"
    return name if attempt == 0 else f"{name}-{id.int % 10**attempt + 10**attempt}"
