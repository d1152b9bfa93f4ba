import { randomBytes } from "node:crypto";

/** A generator of numbers in [0, 1). */
export type Random = () => number;

/** 53 bits of the operating system's generator. */
export const secure: Random = () => Number(randomBytes(8).readBigUInt64LE() >> 11n) * 2 ** -53;

const geometric = (scale: number, random: Random) => Math.floor(-scale * Math.log(1 - random()));

/** epsilon-DP count for rows added or removed: discrete Laplace noise, the difference of two geometric numbers. */
export function noisyCount(rows: unknown[], epsilon: number, random = secure): number {
  const scale = 1 / epsilon;
  return rows.length + geometric(scale, random) - geometric(scale, random);
}

/** As noisyCount, with a bug: the scale is epsilon over the sensitivity, not the other way round. */
export function noisyCountWithBug(rows: unknown[], epsilon: number, random = secure): number {
  const sensitivity = 1;
  const scale = epsilon / sensitivity;
  return rows.length + geometric(scale, random) - geometric(scale, random);
}
