import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test"; // with vitest: import { test } from "vitest"

function dpaudit(...options: string[]) {
  const audit = spawnSync("dpaudit", ["audit", ...options], { encoding: "utf8" });
  assert.equal(audit.status, 0, `${audit.error ?? ""}${audit.stdout}${audit.stderr}`);
}

test("noisyCount is 0.7-DP", { timeout: 120_000 }, () => {
  dpaudit(
    ...["--program", "node audit.ts noisyCount", "--x", "[1]", "--y", "[]"],
    ...["--epsilon", "0.7", "--adjacency", "add-remove", "--runs", "100000", "--alpha", "1e-5"],
  );
});
