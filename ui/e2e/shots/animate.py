"""Puts pictures together into one animated GIF: animate.py FRAMES.json OUT.gif, where FRAMES is [[path, milliseconds], …]."""

import json
import sys

from PIL import Image

frames, out = sys.argv[1:]
with open(frames, encoding="utf-8") as file:
    shown = json.load(file)
pictures = [Image.open(path).convert("RGB").quantize(colors=96, dither=Image.Dither.NONE) for path, _ in shown]
first, *rest = pictures
first.save(out, save_all=True, append_images=rest, duration=[wait for _, wait in shown], loop=0, optimize=True)
