// Builds `dist`: the same sources once as ES modules and once as CommonJS.
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript')), 'tsc.js');

rmSync(join(root, 'dist'), { recursive: true, force: true });
for (const form of ['esm', 'cjs']) {
  const { status } = spawnSync(process.execPath, [tsc, '-p', `tsconfig.${form}.json`], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}
// The package is of type "module"; this half of it is not.
writeFileSync(join(root, 'dist/cjs/package.json'), '{ "type": "commonjs" }\n');
