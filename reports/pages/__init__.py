"""A suite as a page: HTML, Markdown, JUnit XML, CSV."""
