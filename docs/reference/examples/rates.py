"""The function that python.yaml calls."""

from datetime import date
from decimal import Decimal


def exchange_rate(day: date, currency: str) -> Decimal:
    """What one unit of a currency is worth on a day."""
    return Decimal("0.92") if currency == "USD" and day.year > 2020 else Decimal(1)
