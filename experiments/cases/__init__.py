"""Cases: audits and checks of a statement, each with its expected verdict."""
