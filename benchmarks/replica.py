"""The process that answers: `python -m benchmarks.replica SIDE URL`."""

from __future__ import annotations

import sys

import uvloop

from benchmarks.sides import SIDES

side = SIDES[sys.argv[1]](sys.argv[2])
uvloop.run(side.serve())
