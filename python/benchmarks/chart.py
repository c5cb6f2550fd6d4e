# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small SVG charts without a plotting library."""

import math
from html import escape

FLOOR = "floor"
COLOURS = {
    "gdn": "#c2185b",
    "gdn static": "#e58fb1",
    "FLA": "#8d99ae",
    "FLA v-first": "#5c677d",
    "FlashQLA": "#1b7f79",
    "FlashInfer": "#e09f3e",
    "FlashInfer CP": "#9c6615",
    FLOOR: "#222222",
}
OTHERS = ("#3a6ea5", "#6a994e", "#7b2cbf")


def colour(name, names):
    if name in COLOURS:
        return COLOURS[name]
    unknown = [n for n in names if n not in COLOURS]
    return OTHERS[unknown.index(name) % len(OTHERS)]


class Drawing:
    def __init__(self, width, height):
        self.width, self.height, self.parts = width, height, []

    def text(self, x, y, text, size=11, anchor="start", fill="#222", rotate=None):
        turn = f' transform="rotate({rotate} {x:.1f} {y:.1f})"' if rotate else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}"{turn}>'
            f"{escape(str(text))}</text>"
        )

    def line(self, x1, y1, x2, y2, stroke="#ddd", width=1.0):
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" stroke-width="{width}"/>'
        )

    def dot(self, x, y, fill, radius=2.6):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}"/>')

    def mark(self, name, x, y, names):
        """A point of one series; the floor is a dash."""
        if name == FLOOR:
            self.line(x - 5, y, x + 5, y, COLOURS[FLOOR], 1.6)
        else:
            self.dot(x, y, colour(name, names), 3.4 if name == "gdn" else 2.6)

    def legend(self, x, y, names):
        for name in names:
            self.mark(name, x, y - 4, names)
            self.text(x + 9, y, name, 12)
            x += 30 + 7 * len(name)

    def svg(self):
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" font-family="Helvetica, Arial, sans-serif">\n'
            f'<rect width="{self.width}" height="{self.height}" fill="white"/>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )


class Logarithmic:
    """From the least to the largest value, with ticks at 1, 2 and 5."""

    def __init__(self, values):
        self.low = math.log10(min(values, default=1)) - 0.05
        self.high = math.log10(max(values, default=10)) + 0.05

    def place(self, value):
        return (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self):
        """(value, whether it is a main one)"""
        for exponent in range(math.floor(self.low), math.ceil(self.high) + 1):
            for digit in (1, 2, 5):
                tick = digit * 10.0**exponent
                if self.low <= math.log10(tick) <= self.high:
                    yield tick, digit == 1


class Percent:
    """From 0 to 100, or to the largest value."""

    def __init__(self, values):
        self.high = max([100.0, *values]) * 1.03

    def place(self, value):
        return value / self.high

    def ticks(self):
        for tick in range(0, int(self.high) + 1, 20):
            yield tick, tick in (0, 100)


def panels(title, subtitle, groups, columns=3, unit="us", scale=Logarithmic):
    """Panels of points over named places.

    `groups`: {title of a panel: {place: {series: value or None}}}.
    """
    names = list(dict.fromkeys(s for places in groups.values() for series in places.values() for s in series))
    names.sort(key=lambda name: (name != "gdn", name == FLOOR))
    width, height, left, top, foot = 400, 250, 44, 26, 84
    rows = -(-len(groups) // columns)
    drawing = Drawing(columns * width + 20, rows * height + 80)
    drawing.text(16, 24, title, 17)
    drawing.text(16, 42, subtitle, 11, fill="#666")
    drawing.legend(24, 64, names)
    axis = scale([v for places in groups.values() for series in places.values() for v in series.values() if v])
    for number, (panel, places) in enumerate(groups.items()):
        x0, y0 = number % columns * width + left, number // columns * height + 72 + top
        across, down = width - left - 14, height - top - foot

        def up(value, y0=y0, down=down):
            return y0 + down * (1 - axis.place(value))

        drawing.text(x0, y0 - 8, panel, 13)
        for tick, main in axis.ticks():
            drawing.line(x0, up(tick), x0 + across, up(tick), "#ccc" if main else "#eee")
            drawing.text(x0 - 5, up(tick) + 3.5, f"{tick:g}", 9, "end", "#666")
        if number % columns == 0:
            drawing.text(x0 - 30, y0 - 8, unit, 10, "middle", "#666")
        for place, (label, series) in enumerate(places.items()):
            x = x0 + across * (place + 0.5) / len(places)
            drawing.text(x + 3, y0 + down + 10, label, 9, "end", "#444", rotate=-50)
            for name in reversed(names):
                if series.get(name):
                    drawing.mark(name, x, up(series[name]), names)
    return drawing.svg()
