"""Statistical test cases of Google's library of differential privacy, as pairs and parameters."""
