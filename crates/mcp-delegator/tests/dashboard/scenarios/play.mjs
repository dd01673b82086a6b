// Runs one scenario: node play.mjs NAME
import { play } from "./driver.mjs";

const { default: scenario } = await import(`./${process.argv[2]}.mjs`);
try {
  await play(scenario);
} catch (error) {
  console.log(error.stack ?? error);
  process.exitCode = 1;
}
process.exit();
