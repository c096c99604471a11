/**
 * A queue of things that is read from the front.
 *
 * Owns nothing but the order. An array's own `shift` moves every element once the array is long.
 *
 * @module
 */

const COMPACT_AT = 1024;

/** First in, first out. */
export class Deque<T> implements Iterable<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Puts items before all others, in their order. */
  unshift(items: readonly T[]): void {
    this.#items = [...items, ...this];
    this.#head = 0;
  }

  /** The first item, left where it is. */
  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    if (this.#head >= this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head >= COMPACT_AT && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Keeps only what `keep` holds for. */
  filter(keep: (item: T) => boolean): void {
    this.#items = [...this].filter(keep);
    this.#head = 0;
  }

  /** Everything, leaving nothing. */
  takeAll(): T[] {
    const items = [...this];
    this.#items = [];
    this.#head = 0;
    return items;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let at = this.#head; at < this.#items.length; at++) yield this.#items[at] as T;
  }
}
