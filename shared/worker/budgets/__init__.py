"""Money: the ledger of all, the meter of a turn, the question when it is spent."""
