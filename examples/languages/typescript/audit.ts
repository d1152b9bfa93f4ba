// Answers requests of dpaudit:  node audit.ts noisyCount
//
// Copy this file, and name your mechanisms here. Each takes a dataset and a generator, and returns a number.
import { createInterface } from "node:readline";
import { noisyCount, noisyCountWithBug, type Random } from "./count.ts";

const mechanisms: Record<string, (dataset: any, random: Random) => number> = {
  noisyCount: (rows, random) => noisyCount(rows, 0.7, random),
  noisyCountWithBug: (rows, random) => noisyCountWithBug(rows, 0.7, random),
};

// A request is {"runs": 1000, "seed": 7, "dataset": [1, 2, 3]}. With its seed, an audit can be repeated. A mechanism that
// ignores `random` and draws from the operating system can be audited as well.
const mechanism = mechanisms[process.argv[2]];
if (!mechanism) throw new Error(`no mechanism is named ${process.argv[2]}`);
for await (const request of createInterface({ input: process.stdin })) {
  const { runs, seed, dataset } = JSON.parse(request);
  const random = seeded(seed);
  const outputs = Float64Array.from({ length: runs }, () => mechanism(dataset, random));
  process.stdout.write(`{"format": "float64", "shape": [${runs}]}\n`); // vectors: [runs, coordinates]
  process.stdout.write(new Uint8Array(outputs.buffer));
}

/** The generator sfc32, with a seed below 2^53. */
function seeded(seed: number): Random {
  let a = seed | 0, b = (seed / 2 ** 32) | 0, c = 0, counter = 1;
  const bits = () => {
    const sum = (a + b + counter++) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let i = 0; i < 16; i++) bits();
  return () => ((bits() >>> 5) * 2 ** 26 + (bits() >>> 6)) * 2 ** -53;
}
