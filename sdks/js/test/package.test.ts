import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, it } from 'node:test';

const PACKAGE = join(import.meta.dirname, '../..');
const BUILT = existsSync(join(PACKAGE, 'dist/cjs/index.js'));
const manifest = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8')) as {
  name: string;
  version: string;
  license: string;
  dependencies?: object;
};

type Fila = typeof import('../src/index.js');

describe('the package', () => {
  it('has no run-time dependencies and the licence of the project', () => {
    assert.equal(manifest.dependencies, undefined);
    assert.equal(manifest.license, 'AGPL-3.0-only');
  });

  it('is called in its README and changelog what it is called', () => {
    const readme = readFileSync(join(PACKAGE, 'README.md'), 'utf8');
    assert.equal(manifest.name, '@fila/client');
    assert.ok(readme.includes(`npm install ${manifest.name}\n`));
    const imported = [...readme.matchAll(/(?:from|require\() ?'(@fila[^']*)'/g)].map(
      (one) => one[1],
    );
    assert.ok(imported.length > 0);
    assert.deepEqual(new Set(imported), new Set([manifest.name]));
    const changelog = readFileSync(join(PACKAGE, 'CHANGELOG.md'), 'utf8');
    assert.ok(changelog.includes(`## [${manifest.version}]`));
  });

  it('has a lock file without download addresses', () => {
    const lock = readFileSync(join(PACKAGE, 'package-lock.json'), 'utf8');
    assert.ok(!lock.includes('"resolved"'));
  });

  // `npm run build` makes what is tested here; the check script runs it before the tests.
  it('works as ES module and as CommonJS, with errors told apart across both', async (test) => {
    if (!BUILT) {
      test.skip('dist is not built');
      return;
    }
    const name = '@fila/client'; // resolved through the package's own exports
    const asModule = (await import(name)) as Fila;
    const required = createRequire(import.meta.url)(name) as Fila;
    assert.deepEqual(Object.keys(asModule).sort(), Object.keys(required).sort());
    assert.notEqual(asModule.Client, required.Client);
    const error = await required.Client.connect('localhost:1').catch((found: unknown) => found);
    assert.ok(error instanceof asModule.ConnectFailedError);
    assert.ok(error instanceof asModule.FilaError);
    assert.ok(!(error instanceof asModule.QueueNotFoundError));
    const wire = (await import(`${name}/wire`)) as { Opcode: { Enqueue: number } };
    assert.equal(wire.Opcode.Enqueue, 0x10);
  });
});
