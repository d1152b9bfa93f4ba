"""The catalogue of bugs, each as a faulty mechanism."""
