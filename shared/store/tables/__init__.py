"""The tables by subject, one class each; `shared.store.records` is where all of them are imported from."""
