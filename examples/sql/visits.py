"""Noisy number of persons per city, by a query in SQL: 1-DP for persons added or removed."""

import sqlite3

QUERY = """
    SELECT cities.city, COUNT(homes.person)
    FROM cities LEFT JOIN (SELECT person, MIN(city) AS city FROM visits GROUP BY person) AS homes USING (city)
    GROUP BY cities.city
"""


def noisy_visits(visits, rng, query=QUERY):
    """One count for each city of the list, with Laplace noise of scale 1."""
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE visits (person, city)")
        database.executemany("INSERT INTO visits VALUES (:person, :city)", visits)
        database.execute("CREATE TABLE cities AS SELECT column1 AS city FROM (VALUES ('Bern'), ('Oslo'))")
        counts = database.execute(query).fetchall()
    database.close()
    return {city: count + rng.laplace() for city, count in counts}
