import unittest

from temperature import boiling_point, fahrenheit


class Temperature(unittest.TestCase):
    def test_water_boils_at_a_hundred_degrees(self):
        self.assertEqual(boiling_point(0), 100)

    def test_it_boils_earlier_on_a_mountain(self):
        self.assertEqual(boiling_point(3000), 90)

    def test_boiling_water_in_fahrenheit(self):
        self.assertEqual(fahrenheit(100), 212)

    def test_ice_in_fahrenheit(self):
        self.assertEqual(fahrenheit(0), 32)
