// Noisy count that answers with JSON:  node laplace.js 1.0
//
// (1 / scale)-DP for rows added or removed: discrete Laplace noise, the difference of two geometric numbers.
// For demonstration only: a real release draws its noise from crypto.getRandomValues, not from a seed.

const scale = Number(process.argv[2] ?? 1);

function generator(seed) { // sfc32; a JavaScript number holds 53 of the seed's 63 bits
  let a = seed % 2 ** 32 | 0, b = seed / 2 ** 32 | 0, c = 0, counter = 1;
  const bits = () => {
    const t = a + b + counter++ | 0;
    a = b ^ b >>> 9;
    b = c + (c << 3) | 0;
    c = (c << 21 | c >>> 11) + t | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 16; i++) bits();
  return () => ((bits() >>> 5) * 2 ** 26 + (bits() >>> 6) + 1) * 2 ** -53; // in (0, 1]
}

require("readline").createInterface({ input: process.stdin }).on("line", line => {
  const { runs, seed, dataset } = JSON.parse(line);
  const uniform = generator(seed);
  const geometric = () => Math.floor(-scale * Math.log(uniform()));
  const noisy = () => dataset.length + geometric() - geometric();
  console.log(JSON.stringify(Array.from({ length: runs }, noisy)));
});
