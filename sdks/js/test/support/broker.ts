/** A real broker for tests: started on a free port with a directory of its own, killed and restarted. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const REPOSITORY = join(import.meta.dirname, '../../../../..');
const READY_MS = 60_000;

export interface BrokerOptions {
  /** Environment variables of fila-server. */
  readonly env?: Readonly<Record<string, string>>;
}

export class Broker {
  address = '';
  readonly directory = mkdtempSync(join(tmpdir(), 'fila-js-'));
  readonly #env: Readonly<Record<string, string>>;
  #process: ChildProcess | undefined;

  private constructor(options: BrokerOptions) {
    this.#env = options.env ?? {};
  }

  static async start(options: BrokerOptions = {}): Promise<Broker> {
    const broker = new Broker(options);
    await broker.restart();
    return broker;
  }

  /** Starts it again on the same directory and port. */
  async restart(): Promise<void> {
    const portFile = join(this.directory, 'port');
    rmSync(portFile, { force: true });
    const log = openSync(join(this.directory, 'log'), 'a');
    const command = process.env.FILA_SERVER_BIN ?? join(REPOSITORY, '.venv/bin/fila-server');
    const child = spawn(command, [], {
      cwd: this.directory,
      env: {
        ...withoutFila(process.env),
        PYTHONPATH: process.env.PYTHONPATH ?? join(REPOSITORY, 'src'),
        FILA_SERVER__LISTEN_ADDR: this.address || '127.0.0.1:0',
        FILA_DATA_DIR: join(this.directory, 'data'),
        FILA_PORT_FILE: portFile,
        ...this.#env,
      },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.#process = child;
    const spawned = once(child, 'spawn');
    await spawned;
    const end = Date.now() + READY_MS;
    while (!existsSync(portFile) || readFileSync(portFile, 'utf8') === '') {
      if (child.exitCode !== null || Date.now() > end) {
        throw new Error(`the broker did not start:\n${this.log()}`);
      }
      await sleep(20);
    }
    this.address = readFileSync(portFile, 'utf8').trim();
  }

  /** Neither reads nor answers; connections stay open. */
  freeze(): void {
    this.#process?.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process?.kill('SIGCONT');
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child?.exitCode !== null) return; // undefined too: nothing runs
    const exited = once(child, 'exit');
    child.kill('SIGCONT');
    child.kill(signal);
    await exited;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }

  log(): string {
    return readFileSync(join(this.directory, 'log'), 'utf8').slice(-4000);
  }
}

function withoutFila(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('FILA_')));
}
