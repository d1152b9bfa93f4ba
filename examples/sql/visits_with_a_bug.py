"""The same count with a bug: it counts visits and not persons."""

from functools import partial

from visits import noisy_visits as counted

noisy_visits = partial(
    counted, query="SELECT cities.city, COUNT(person) FROM cities LEFT JOIN visits USING (city) GROUP BY cities.city"
)
