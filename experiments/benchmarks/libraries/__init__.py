"""Page of libraries: audits of releases, defects found by the search, and Google's test cases."""
