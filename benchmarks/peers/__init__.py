"""The same question and answer on other people's frameworks, each in an environment of its own."""
