/** The colour names that agent files use, one hue each. */
export const HUES = ['blue', 'orange', 'green', 'purple', 'pink', 'teal', 'red', 'cyan', 'yellow', 'magenta', 'brown', 'gray'] as const;
export type Hue = (typeof HUES)[number];

const ALIASES: Record<string, Hue> = { grey: 'gray', white: 'gray', black: 'gray', violet: 'purple', indigo: 'purple', lime: 'green', amber: 'yellow' };
/** The hue angle of each name, for colours that are given as `#rrggbb`. */
const ANGLES: [number, Hue][] = [[0, 'red'], [25, 'orange'], [50, 'yellow'], [130, 'green'], [172, 'teal'], [192, 'cyan'], [220, 'blue'], [262, 'purple'], [305, 'magenta'], [332, 'pink'], [360, 'red']];

/** The hue for a colour of an agent file: a name, `#rgb` or `#rrggbb`. Anything else gets a stable one by its name. */
export function hueOf(color: string | undefined, seed = ''): Hue {
  const name = color?.trim().toLowerCase() ?? '';
  if ((HUES as readonly string[]).includes(name)) return name as Hue;
  const alias = ALIASES[name];
  if (alias) return alias;
  const rgb = parseHex(name);
  return rgb ? nearest(rgb) : byName(seed || name);
}

function parseHex(text: string): [number, number, number] | undefined {
  const digits = /^#?([0-9a-f]{3}|[0-9a-f]{6})$/.exec(text)?.[1];
  if (!digits) return undefined;
  const full = digits.length === 3 ? [...digits].map((digit) => digit + digit).join('') : digits;
  return [0, 2, 4].map((at) => parseInt(full.slice(at, at + 2), 16)) as [number, number, number];
}

function nearest([red, green, blue]: [number, number, number]): Hue {
  const high = Math.max(red, green, blue);
  const spread = high - Math.min(red, green, blue);
  if (spread < 24) return 'gray';
  const sector = high === red ? ((green - blue) / spread + 6) % 6 : high === green ? (blue - red) / spread + 2 : (red - green) / spread + 4;
  const angle = sector * 60;
  return ANGLES.reduce((best, next) => (Math.abs(next[0] - angle) < Math.abs(best[0] - angle) ? next : best))[1];
}

function byName(seed: string): Hue {
  let hash = 0;
  for (const char of seed) hash = (hash * 31 + char.charCodeAt(0)) >>> 0;
  return HUES[hash % (HUES.length - 1)] ?? 'blue';
}
