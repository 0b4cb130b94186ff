"""From Esri's geometry to GeoJSON in degrees, and the middle of a shape."""

from __future__ import annotations

import math
from typing import Any

#: Decimals of a degree: a centimeter.
_DECIMALS = 7
_DEGREES = frozenset({4326, 4269, 4167, 104199})
_WEB_MERCATOR = frozenset({3857, 102100, 102113, 900913})
_EARTH = 6378137.0

Point = tuple[float, float]
Ring = list[Point]


def wkid_of(reference: Any) -> int | None:
    """Return the number of a spatial reference; None where it has none."""
    if not isinstance(reference, dict):
        return None
    number = reference.get("latestWkid") or reference.get("wkid")
    return number if isinstance(number, int) else None


def is_readable(wkid: int | None) -> bool:
    """Return whether coordinates of this reference can be given in degrees; without a number they must be degrees."""
    return wkid is None or wkid in _DEGREES or wkid in _WEB_MERCATOR


def from_esri(shape: Any, wkid: int | None) -> dict[str, Any]:
    """Return `geometry` and `centroid` of a shape; empty where there is none that can be read."""
    if not isinstance(shape, dict) or not is_readable(wkid):
        return {}
    try:
        geometry = _geometry(shape, wkid in _WEB_MERCATOR)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError):
        return {}
    return described(geometry) if geometry else {}


def described(geometry: dict[str, Any]) -> dict[str, Any]:
    """Return a GeoJSON geometry with its middle, where its coordinates are degrees; else nothing."""
    try:
        middle = _middle(geometry)
    except (TypeError, ValueError, KeyError, IndexError, ZeroDivisionError):
        return {}
    if middle is None or not (abs(middle[0]) <= 180 and abs(middle[1]) <= 90):
        return {}
    return {"geometry": geometry, "centroid": [round(middle[0], _DECIMALS), round(middle[1], _DECIMALS)]}


def _geometry(shape: dict[str, Any], is_mercator: bool) -> dict[str, Any] | None:
    if "rings" in shape:
        return _polygon([_points(ring, is_mercator) for ring in shape["rings"] if len(ring) > 3])
    if shape.get("x") is not None and "y" in shape:
        return {"type": "Point", "coordinates": _points([(shape["x"], shape["y"])], is_mercator)[0]}
    if "points" in shape:
        return {"type": "MultiPoint", "coordinates": _points(shape["points"], is_mercator)}
    if "paths" in shape:
        return {"type": "MultiLineString", "coordinates": [_points(path, is_mercator) for path in shape["paths"]]}
    return None


def _points(points: Any, is_mercator: bool) -> Ring:
    if is_mercator:
        points = [_degrees(point[0], point[1]) for point in points]
    found = [(round(point[0], _DECIMALS), round(point[1], _DECIMALS)) for point in points]
    if not all(math.isfinite(x) and math.isfinite(y) for x, y in found):
        raise ValueError("a coordinate is no number")
    return found


def _degrees(x: float, y: float) -> Point:
    return math.degrees(x / _EARTH), math.degrees(2 * math.atan(math.exp(y / _EARTH)) - math.pi / 2)


def _polygon(rings: list[Ring]) -> dict[str, Any] | None:
    """Esri's outer rings go clockwise, GeoJSON's the other way; a hole belongs to the ring that it lies in."""
    if len(rings) == 1:
        ring = rings[0]
        return {"type": "Polygon", "coordinates": [ring[::-1] if _area(ring) < 0 else ring]}
    outer = [[ring[::-1]] for ring in rings if _area(ring) < 0]
    holes = [ring[::-1] for ring in rings if _area(ring) >= 0]
    if not outer:  # a layer that turns the other way round
        outer, holes = [[ring] for ring in rings], []
    if not outer:
        return None
    for hole in holes:
        home = next((polygon for polygon in outer if _lies_in(hole[0], polygon[0])), outer[-1])
        home.append(hole)
    if len(outer) == 1:
        return {"type": "Polygon", "coordinates": outer[0]}
    return {"type": "MultiPolygon", "coordinates": outer}


def _area(ring: Ring) -> float:
    """Twice the area of a ring; negative where it goes clockwise."""
    total = 0.0
    x0, y0 = ring[-1]
    for x, y in ring:
        total += x0 * y - x * y0
        x0, y0 = x, y
    return total


def _lies_in(point: Point, ring: Ring) -> bool:
    x, y = point
    inside = False
    x0, y0 = ring[-1]
    for x1, y1 in ring:
        if (y1 > y) != (y0 > y) and x < (x0 - x1) * (y - y1) / (y0 - y1) + x1:
            inside = not inside
        x0, y0 = x1, y1
    return inside


def _middle(geometry: dict[str, Any]) -> Point | None:
    """The middle of the largest area; of points and lines, the mean of the points."""
    kind, coordinates = geometry["type"], geometry["coordinates"]
    if kind in ("Polygon", "MultiPolygon"):
        outer = [coordinates[0]] if kind == "Polygon" else [polygon[0] for polygon in coordinates]
        return _middle_of_ring(max(outer, key=lambda ring: abs(_area(ring))) if len(outer) > 1 else outer[0])
    if kind == "Point":
        return coordinates[0], coordinates[1]
    flat = coordinates if kind in ("MultiPoint", "LineString") else [point for line in coordinates for point in line]
    return sum(point[0] for point in flat) / len(flat), sum(point[1] for point in flat) / len(flat)


def _middle_of_ring(ring: Ring) -> Point:
    # Relative to the first point: a parcel is a millionth of a degree's square, and its digits would be lost.
    left, low = ring[0][0], ring[0][1]
    area = x_sum = y_sum = x0 = y0 = 0.0
    for point in ring:
        x, y = point[0] - left, point[1] - low
        cross = x0 * y - x * y0
        area += cross
        x_sum += (x0 + x) * cross
        y_sum += (y0 + y) * cross
        x0, y0 = x, y
    if abs(area) < 1e-18:
        return sum(point[0] for point in ring) / len(ring), sum(point[1] for point in ring) / len(ring)
    return left + x_sum / (3 * area), low + y_sum / (3 * area)
