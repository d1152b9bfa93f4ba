"""Tables about audits of one training run with canaries."""
