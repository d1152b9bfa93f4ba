"""Wrong twins of DP-SGD: mistakes made in the wild, each with its source, a pair that shows it, and its true loss."""
