"""The scripted model that needs no key: `scene` reads, `script` decides, `report` has the words."""

from shared.models.demo.model import DemoModel

__all__ = ["DemoModel"]
