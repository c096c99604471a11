import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';

import { Broker } from './support/broker.js';

const EXAMPLES = join(import.meta.dirname, '../examples');
const PACKAGE = join(import.meta.dirname, '../..');
const run = promisify(execFile);

let broker: Broker;

before(async () => {
  broker = await Broker.start();
});

after(async () => {
  await broker.stop();
});

async function outputOf(example: string): Promise<string[]> {
  const { stdout } = await run(process.execPath, [join(EXAMPLES, example), broker.address]);
  return stdout.trim().split('\n');
}

describe('the example', () => {
  it('produce-consume stores and receives', async () => {
    const lines = await outputOf('produce-consume.js');
    assert.match(lines[0] ?? '', /^stored [0-9a-f-]{36}$/);
    assert.deepEqual(lines.slice(1), [
      'stored 3 more',
      'received hello from JavaScript',
      'received one',
      'received two',
      'received three',
    ]);
  });

  it('fairness serves by weight, not by who came first', async () => {
    const lines = await outputOf('fairness.js');
    const served = new Map(lines.map((line) => line.split(': ') as [string, string]));
    assert.equal(Number(served.get('small')), 10);
    assert.ok(Number(served.get('paying')) >= 28, lines.join());
    assert.ok(Number(served.get('big')) <= 12, lines.join());
  });

  it('throttling holds one provider back and not the other', async () => {
    const [fast = '', slow] = await outputOf('throttling.js');
    assert.ok(Number(fast.split(' ').at(-1)) <= 8, fast);
    assert.equal(slow, 'six slow ones took about a second');
  });

  it('retry-dead-letters gives up, shows and moves back', async () => {
    assert.deepEqual(await outputOf('retry-dead-letters.js'), [
      'attempt 1 failed',
      'attempt 2 failed',
      'attempt 3 failed',
      'dead letter: order 7',
      'moved back: 1',
      'done: order 7',
    ]);
  });

  it('of the README run as they stand', async () => {
    const readme = readFileSync(join(PACKAGE, 'README.md'), 'utf8');
    const snippets = [...readme.matchAll(/```js run\n([\s\S]*?)```/g)].map((found) => found[1]);
    assert.ok(snippets.length >= 3);
    const index = new URL('../src/index.js', import.meta.url).href;
    for (const snippet of snippets) {
      const code = (snippet ?? '')
        .replaceAll("'@fila/client'", `'${index}'`)
        .replaceAll('localhost:5555', broker.address);
      await run(process.execPath, ['--input-type=module', '-e', code]);
    }
  });

  it('is tested here, every one', () => {
    const tested = readFileSync(join(PACKAGE, 'test/examples.test.ts'), 'utf8');
    for (const file of readdirSync(join(PACKAGE, 'examples'))) {
      assert.ok(tested.includes(`outputOf('${file.replace('.ts', '.js')}')`), file);
    }
  });
});
