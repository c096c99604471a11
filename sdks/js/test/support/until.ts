import { setTimeout as sleep } from 'node:timers/promises';

/** Polls until `look` is true, for as long as a slow machine may need. */
export async function until(look: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + 30_000;
  while (!(await look())) {
    if (Date.now() > end) throw new Error(`never happened: ${what}`);
    await sleep(10);
  }
}
