"""Tables about record and replay."""
