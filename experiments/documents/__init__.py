"""The statements of the source documents as cases."""
