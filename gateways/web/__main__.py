"""Run the page and the API: `python -m gateways.web`."""

from gateways.web.main import main

main()
