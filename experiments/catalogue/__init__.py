"""The catalogue of bugs, each with a faulty mechanism that has it."""
