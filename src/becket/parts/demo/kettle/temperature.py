"""When water boils, and how Americans say it."""


def boiling_point(metres):
    """In degrees Celsius; every 300 metres it boils one degree earlier."""
    return round(100 - metres / 300, 1)


def fahrenheit(celsius):
    return round(celsius * 9 / 5 + 32, 1)
